// An iteration cut into time segments, and each buffer's life in them, for BoundByPrices(). Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler::prices {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Note [Segments]
// Memory is checked at the start of chosen operations, including the first. Segment 2b is the time
// before the b-th of them starts. Segment 2b + 1 is the least time of the operations from it to the
// next one. All other time (waits, slower algorithms, reruns) counts as time before the next check.
// Copies happen in segments. Segments count on past the iteration's end.
class Segments {
 public:
  // `checks` are ascending and start with operation 0.
  Segments(int32_t operations, std::vector<int32_t> checks);

  int32_t check_count() const { return static_cast<int32_t>(checks_.size()); }
  int32_t count() const { return 2 * check_count(); }
  int32_t check(int32_t index) const { return checks_[static_cast<size_t>(index)]; }

  // Operations may count on past the iteration's end.
  int32_t GroupOf(int32_t operation) const;
  bool IsCheck(int32_t operation) const;
  // The first segment with activity after it; the last one before.
  int32_t After(int32_t operation) const;
  int32_t Before(int32_t operation) const;

 private:
  std::vector<int32_t> checks_;
  std::vector<int32_t> groups_;  // by operation
};

// Between two touches of a buffer.
struct Gap {
  int32_t first = 0, last = 0;
  // The first segment began before the touch, so its check is outside the gap.
  bool starts_in_group = false;
  bool dead = false;         // the content is not needed again
  bool new_content = false;  // the program writes new content, so leaving needs no copy
  bool write_after = false;  // the touch at its end invalidates the host copy
  double again_ns = kNever;  // least time to recompute all of the content
};

struct Life {
  double held_bytes = 0;
  double out_work = 0, in_work = 0;  // link bytes of a copy, including its latency
  bool starts_copied = false;        // never written: the host copy stays valid
  std::vector<Gap> gaps;             // cyclic if the buffer persists
};

struct Lives {
  std::vector<Life> lives;
  std::vector<double> live_bytes;  // by check: if nothing moves, without workspaces
  // By operation: memory for its workspace with only its buffers and immovable memory resident.
  std::vector<double> room_bytes;
};

// At most `most`: the first operation, and each stretch's operation with the most live bytes.
std::vector<int32_t> ChooseChecks(const IterationProfile& profile, int32_t most);

Lives MeasureLives(const Problem& problem, const Segments& segments);

}  // namespace spillway::scheduler::prices
