// An iteration cut into segments of time, and what each buffer's life looks like in them: what
// BoundByPrices() puts prices on.
//
// Used by the price bound only; pure. See Note [Segments].
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler::prices {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Note [Segments]
// Memory is checked at the start of chosen operations, the first of the iteration among them.
// Segment 2b is the time before the b-th of them starts, segment 2b + 1 what the operations from it
// on until the next one take at least. All other time counts as time before the next check:
// waiting, slower algorithms, operations that run again. Copies happen in segments. Past the
// iteration's end segments count on.
class Segments {
 public:
  // `checks`: ascending, from operation 0 on.
  Segments(int32_t operations, std::vector<int32_t> checks);

  int32_t check_count() const { return static_cast<int32_t>(checks_.size()); }
  int32_t count() const { return 2 * check_count(); }
  int32_t check(int32_t index) const { return checks_[static_cast<size_t>(index)]; }

  // Operations may count on past the iteration's end, too.
  int32_t GroupOf(int32_t operation) const;
  bool IsCheck(int32_t operation) const;
  // The first segment in which something happens after an operation; the last before one.
  int32_t After(int32_t operation) const;
  int32_t Before(int32_t operation) const;

 private:
  std::vector<int32_t> checks_;
  std::vector<int32_t> groups_;  // by operation
};

// A stretch of a buffer's life between two touches, in segments.
struct Gap {
  int32_t first = 0, last = 0;
  bool starts_in_group =
      false;          // the first segment began before the touch: its check is not in the gap
  bool dead = false;  // nobody needs the content again
  bool new_content =
      false;  // the program brings other content, also on the host: leaving needs no copy
  bool write_after = false;  // the touch at its end makes a copy on the host worthless
  double again_ns = kNever;  // to make the whole content again, at least
};

struct Life {
  double held_bytes = 0;
  double out_work = 0, in_work = 0;  // bytes that a copy takes of the link, its latency included
  bool starts_copied = false;        // never written: a copy on the host stays good
  std::vector<Gap> gaps;             // cyclic where the buffer persists
};

struct Lives {
  std::vector<Life> lives;
  std::vector<double> live_bytes;  // by check: held if nothing moves, without workspaces
  std::vector<double> room_bytes;  // by operation: for its workspace, when only what it touches and
                                   // what never moves is there
};

// At most `most` operations: the first, and of each stretch of the iteration the one with the most
// live bytes.
std::vector<int32_t> ChooseChecks(const IterationProfile& profile, int32_t most);

Lives MeasureLives(const Problem& problem, const Segments& segments);

}  // namespace spillway::scheduler::prices
