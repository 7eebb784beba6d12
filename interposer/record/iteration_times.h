// How long the iterations of plans take on the device, of which pattern each was, and how far it
// was that plan's.
//
// Began is called where a plan's follower comes to an iteration's first event, by one thread at a
// time, with the job's context current; Next by the recorder's reader. Owns a few events, which it
// uses again and again.
//
// Invariants
//  1. A time is read only when the device has passed both its ends: nothing waits.
//  2. When the reader is behind, iterations go untold; a time never spans two.
//  3. A time is told of a pattern only when the iteration began and ended by it: in one in which
//  another plan took effect,
//     or the same pattern's plan began or ended to move memory, neither is known to have been
//     followed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// What is known where an iteration begins.
struct IterationBegin {
  std::uint64_t pattern = 0;  // its plan's: the fingerprint
  bool is_planned = false;    // the plan moves something; else memory goes by the reactive policy
  std::uint64_t moved_bytes = 0;  // to the host and back until now
  std::uint64_t last_misses = 0;  // of the iteration that this one follows
  bool last_was_stopped = false;  // likewise
};

struct IterationTime {
  std::int64_t duration_ns = 0;
  std::uint64_t pattern = 0;      // 0: not of one alone
  bool is_planned = false;        // as IterationBegin says
  std::uint64_t moved_bytes = 0;  // to the host and back
  std::uint64_t misses = 0;       // events that were other than the plan's
  bool was_stopped = false;  // a full scan stopped it: it took longer than its plan says, and the
                             // next ones will not
};

class IterationTimes {
 public:
  void Began(CUstream stream, const IterationBegin& begin);
  // The oldest that has not been told; false when there is none yet.
  bool Next(IterationTime* out);
  std::uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  // Gives the events back. The job's context is current.
  void Release();

 private:
  struct Mark {
    CUevent event = nullptr;
    bool is_recorded = false;
    std::uint64_t iteration = 0;
    IterationBegin begin;
  };
  static constexpr std::size_t kMarks = 16;

  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> marked_{0};
  std::atomic<std::uint64_t> read_{0};
  Mark marks_[kMarks];  // those from read_ to marked_ are the reader's, the others the writer's
};

}  // namespace spillway::interposer
