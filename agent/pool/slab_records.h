// Records of the slabs for the next agent, in a memory file that outlives this one. Like the slabs'
// own files it is in systemd's store, or passed across an exec.
//
// Invariants
//  1. Only a complete record counts: an agent killed in mid-write leaves the slab unknown, never
//     another job's.
//  2. A lease is recorded before the job gets the slab's file.
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

struct PoolJob {
  uid_t uid = 0;
  std::string name;  // unique; at most 127 characters count
  auto operator<=>(const PoolJob&) const = default;
};

struct PoolHolder {
  PoolJob job;
  pid_t pid = 0;
  auto operator<=>(const PoolHolder&) const = default;
};

struct SlabRecord {
  enum class Use : uint32_t {
    kUnused = 1,
    kLeased = 2,
    kKept = 3,  // returned by its process, still its job's alone
  };
  Use use = Use::kUnused;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t page_bytes = 0;
  int32_t node = 0;
  int32_t wanted_node = 0;
  PoolHolder holder;  // unless kUnused
  bool operator==(const SlabRecord&) const = default;
};

class SlabRecords {
 public:
  static constexpr size_t kMostSlabs = 4096;

  static std::optional<SlabRecords> Make();
  // Nullopt: not such a file.
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
