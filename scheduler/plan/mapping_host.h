// Models when the program's thread finishes the driver calls that give memory to a buffer.
//
// The thread runs ahead of the device. It takes memory in the model's order, once enough is free
// and its earlier calls are done; only then can an operation start. While it waits it unmaps
// evicted buffers, one by one. Free memory is in chunks, which must be mapped, or still mapped
// where a buffer died. The latter serves the next buffer of its size without a call, in stream
// order (as in interposer/execute/residency/residency.cpp).
//
// One per simulated run. Without mapping prices it never delays anything. The free bytes that
// callers pass include those still mapped.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// One per problem, shared by its runs.
class MappingCosts {
 public:
  MappingCosts(const Problem& problem, const std::vector<int64_t>& footprints_bytes);

  bool AnyIsPaid() const { return !sizes_.empty(); }
  struct Size {
    int64_t bytes = 0;
    int64_t map_ns = 0;
    int64_t unmap_ns = 0;
  };
  const std::vector<Size>& sizes() const { return sizes_; }
  // An index into sizes(); -1: slab memory, never mapped.
  int32_t size_of(BufferId id) const { return size_of_[static_cast<size_t>(id.index)]; }

 private:
  std::vector<Size> sizes_;
  std::vector<int32_t> size_of_;
};

class MappingHost {
 public:
  explicit MappingHost(const MappingCosts& costs);

  // The buffer's memory becomes free: to be unmapped after Left; still mapped after Died.
  void Left(BufferId id, int64_t bytes, int64_t now_ns);
  void Died(BufferId id, int64_t bytes, int64_t now_ns);
  // Of a workspace.
  void Freed(int64_t bytes, int64_t now_ns) {
    if (is_paid_) Note({now_ns, bytes, -1});
  }
  // A new buffer may get memory that is still mapped.
  enum class Content : uint8_t { kNew, kKept };
  void Give(BufferId id, int64_t free_bytes, Content content);
  int64_t ready_ns() const { return ready_ns_; }

  // Memory mapped for no buffer. Iterations that begin with equal backlogs cost the host the same.
  struct Backlog {
    int64_t to_unmap_ns = 0;            // evicted buffers
    std::vector<int32_t> still_mapped;  // dead buffers, by size
    bool operator==(const Backlog&) const = default;
  };
  const Backlog& backlog() const { return backlog_; }

 private:
  struct Release {
    int64_t time_ns = 0;
    int64_t bytes = 0;
    int32_t mapped_size = -1;
  };
  void Note(Release release);
  bool TakeMapped(int32_t size);
  void UnmapEvictedBy(int64_t time_ns);
  int64_t UnmapNs(int64_t wanted_bytes, int64_t free_bytes);
  int64_t AvailableNs(int64_t slack_bytes) const;

  const MappingCosts& costs_;
  const bool is_paid_;
  int64_t ready_ns_ = 0;
  Backlog backlog_;
  int64_t still_mapped_bytes_ = 0;
  struct Evicted {
    int64_t time_ns = 0;
    int64_t unmap_ns = 0;
  };
  std::vector<Evicted> left_;           // in the order in which they left
  std::array<Release, 64> releases_{};  // ring of the latest releases
  size_t next_release_ = 0;
};

}  // namespace spillway::scheduler
