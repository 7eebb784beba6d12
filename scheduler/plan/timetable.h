// When each operation runs and what is live then, if nothing waits or moves. One per problem;
// immutable. Sizes are footprints, as in the cost model.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

class Timetable {
 public:
  // By operation, or empty for the smallest ones.
  explicit Timetable(const Problem& problem, const std::vector<int32_t>& workspaces = {});

  // The same loads and sizes, with each operation longer by its preceding recomputations.
  Timetable Stretched(const std::vector<int64_t>& extra_ns) const;

  int32_t operation_count() const { return static_cast<int32_t>(load_bytes_.size()); }
  int64_t iteration_ns() const { return starts_ns_.back(); }

  // Operations count on past the iteration's end: operation n is the first of the next iteration.
  int64_t start_ns(int32_t operation) const {
    const int32_t count = operation_count();
    return starts_ns_[static_cast<size_t>(operation % count)] +
           iteration_ns() * (operation / count);
  }
  int64_t end_ns(int32_t operation) const {
    const int32_t count = operation_count();
    return starts_ns_[static_cast<size_t>(operation % count) + 1] +
           iteration_ns() * (operation / count);
  }
  int64_t duration_ns(int32_t operation) const { return end_ns(operation) - start_ns(operation); }

  // For non-negative times.
  int32_t FirstStartingFrom(int64_t when_ns) const;
  int32_t FirstEndingAfter(int64_t when_ns) const;

  int64_t footprint_bytes(BufferId buffer) const {
    return footprints_bytes_[static_cast<size_t>(buffer.index)];
  }
  // Alone on the link, including latency.
  int64_t to_host_ns(BufferId buffer) const {
    return to_host_ns_[static_cast<size_t>(buffer.index)];
  }
  int64_t to_device_ns(BufferId buffer) const {
    return to_device_ns_[static_cast<size_t>(buffer.index)];
  }

  // By operation: live footprints plus the workspace.
  const std::vector<int64_t>& load_bytes() const { return load_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }

  // The first untouched operation, and the one that ends it, counting on if it wraps.
  static int32_t BeginOf(const IdleInterval& interval) { return interval.from.index + 1; }
  int32_t EndOf(const IdleInterval& interval) const {
    return interval.wraps ? interval.to.index + operation_count() : interval.to.index;
  }

 private:
  void MeasureBuffers(const Problem& problem);
  void MeasureLoad(const Problem& problem, const std::vector<int32_t>& workspaces);

  std::vector<int64_t> starts_ns_;  // one more than operations; the last is iteration_ns
  std::vector<int64_t> load_bytes_;
  std::vector<int64_t> footprints_bytes_, to_host_ns_, to_device_ns_;
  int64_t peak_bytes_ = 0;
};

}  // namespace spillway::scheduler
