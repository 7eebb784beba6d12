// The program's thread as the cost model sees it: when it has made the driver's calls that give
// memory to a buffer.
//
// The thread runs ahead of the device. It takes memory in the order in which the model gives it, as
// soon as enough of it is free and its earlier calls are made; what it is asked for can start on
// the device no sooner. While it waits it unmaps what leaves, one by one. Memory that is free lies
// in chunks, which are mapped into the buffer, or is still mapped where a buffer died, and serves
// the next one of its size as it is, without any call and in the stream's order
// (interposer/execute/residency.cpp does the same).
//
// One per simulated run, on one thread. Where the device's mapping costs nothing it keeps no
// backlog and never delays anybody.
//
// Invariant
//   1. The free bytes that callers state are those in chunks and those still mapped, together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// Sizes of buffers that are mapped, and what the calls for each cost; one per problem, shared by
// its runs.
class MappingCosts {
 public:
  MappingCosts(const Problem& problem, const std::vector<int64_t>& footprints_bytes);

  bool AnyIsPaid() const { return unmap_ns_ > 0 || !sizes_.empty(); }
  int64_t unmap_ns() const { return unmap_ns_; }
  struct Size {
    int64_t bytes = 0;
    int64_t map_ns = 0;
  };
  // Ascending.
  const std::vector<Size>& sizes() const { return sizes_; }
  // Of the buffer's footprint; -1: its memory is part of a slab, and nothing is ever mapped.
  int32_t size_of(BufferId id) const { return size_of_[static_cast<size_t>(id.index)]; }

 private:
  int64_t unmap_ns_ = 0;
  std::vector<Size> sizes_;
  std::vector<int32_t> size_of_;
};

class MappingHost {
 public:
  explicit MappingHost(const MappingCosts& costs);

  // The buffer's memory is free: it is to be unmapped, or stays mapped for another one.
  void Left(BufferId id, int64_t bytes, int64_t now_ns);
  void Died(BufferId id, int64_t bytes, int64_t now_ns);
  // So are bytes of a workspace.
  void Freed(int64_t bytes, int64_t now_ns) {
    if (is_paid_) Note({now_ns, bytes, -1});
  }
  // The buffer is given some of the free bytes; a new one may be given what is mapped.
  enum class Content : uint8_t { kNew, kKept };
  void Give(BufferId id, int64_t free_bytes, Content content);
  // When all calls so far are made.
  int64_t ready_ns() const { return ready_ns_; }

  // What is mapped for nobody: where an iteration begins as the one before, what it asks of the
  // host is the same.
  struct Backlog {
    int64_t to_unmap = 0;               // buffers that have left
    std::vector<int32_t> still_mapped;  // by size: buffers that have died
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
  void UnmapWhatLeftBy(int64_t time_ns);
  int64_t UnmapNs(int64_t wanted_bytes, int64_t free_bytes);
  int64_t AvailableNs(int64_t slack_bytes) const;

  const MappingCosts& costs_;
  const bool is_paid_;
  int64_t ready_ns_ = 0;
  Backlog backlog_;
  int64_t still_mapped_bytes_ = 0;
  std::vector<int64_t> left_ns_;        // when those to be unmapped left, ascending
  std::array<Release, 64> releases_{};  // the latest, in a ring
  size_t next_release_ = 0;
};

}  // namespace spillway::scheduler
