// Times of plans' iterations on the device, with their pattern and deviations.
//
// The plan's follower calls Began at an iteration's first event, one thread at a time, with the
// job's context current. The recorder's reader calls Next.
// Invariants
//  1. A time is read only after the device has passed both its ends: nothing waits.
//  2. If the reader is behind, iterations are skipped. A time never spans two.
//  3. A time has a pattern only if the iteration began and ended under the same plan. It has none
//     if another plan took effect, or the plan began or stopped moving memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct IterationBegin {
  std::uint64_t pattern = 0;      // the plan's fingerprint
  bool is_planned = false;        // the plan moves memory; otherwise the reactive policy does
  std::uint64_t moved_bytes = 0;  // to the host and back so far
  std::uint64_t last_misses = 0;
  bool last_was_stopped = false;
};

struct IterationTime {
  std::int64_t duration_ns = 0;
  std::uint64_t pattern = 0;  // fingerprint; 0: not of one plan alone
  bool is_planned = false;
  std::uint64_t moved_bytes = 0;  // to the host and back
  std::uint64_t misses = 0;       // events that are not the plan's
  bool was_stopped = false;       // a full scan stopped it: only this iteration is slower
};

class IterationTimes {
 public:
  void Began(CUstream stream, const IterationBegin& begin);
  std::optional<IterationTime> Next();
  std::uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }
  // The job's context is current.
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
  Mark marks_[kMarks];  // read_ to marked_ belong to the reader, the others to the writer
};

}  // namespace spillway::interposer
