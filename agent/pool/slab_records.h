// What an agent that starts again must know of its slabs, in a file in memory that outlives it:
// beside the slabs' own files, in systemd's store or across an exec.
//
// One thread, the pool's. The file never leaves the agent.
//
// Invariants
//  1. A record counts only when it is whole: an agent killed between two bytes leaves the slab
//  unknown, never somebody else's.
//  2. That a slab is leased is written before the job gets its file.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "protocol/message.h"

namespace spillway::agent {

// A job as the pool knows it: the same across restarts of the agent.
struct PoolJob {
  uid_t uid = 0;
  std::string name;  // never another job's; at most 127 characters count
  auto operator<=>(const PoolJob&) const = default;
};

struct PoolHolder {
  PoolJob job;
  pid_t pid = 0;
  auto operator<=>(const PoolHolder&) const = default;
};

struct SlabRecord {
  enum class Use : uint32_t {
    kUnused = 1,  // nobody's yet
    kLeased = 2,
    kKept = 3,  // given back by its process, and still its job's alone
  };
  Use use = Use::kUnused;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;
  int32_t node = 0;
  int32_t wanted_node = 0;
  PoolHolder holder;  // unless it is unused
  bool operator==(const SlabRecord&) const = default;
};

class SlabRecords {
 public:
  static constexpr size_t kMostSlabs = 4096;

  static std::optional<SlabRecords> Make();
  // An earlier agent's. Nothing: it is no such file.
  static std::optional<SlabRecords> Adopt(base::UniqueFd file);
  SlabRecords(SlabRecords&&) noexcept = default;
  SlabRecords& operator=(SlabRecords&&) noexcept = default;

  void Write(size_t at, const SlabRecord& record);
  void Erase(size_t at);
  std::optional<SlabRecord> Read(size_t at) const;
  int file() const { return file_.get(); }

 private:
  struct Entry;
  struct Table;
  SlabRecords(base::UniqueFd file, base::Mapping memory)
      : file_(std::move(file)), memory_(std::move(memory)) {}
  Entry& At(size_t at) const;

  base::UniqueFd file_;
  base::Mapping memory_;
};

}  // namespace spillway::agent
