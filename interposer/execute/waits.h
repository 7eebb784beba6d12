// How the program waits for the device, the link and others, and how such a wait is counted.
//
// Called with no lock held but the making lock.
//
// Invariants
//  1. No wait holds the state lock.
//  2. A wait is in the report once (stall_clock.h), and in the trace.
// Never: moves memory.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/stall_clock.h"
#include "interposer/execute/vain_waits.h"

namespace spillway::interposer {

class Waits {
 public:
  struct AwaitedUse {
    Use use;
    CUevent event;  // null: none can be recorded
  };
  using Awaited = base::InlineVector<AwaitedUse, 4>;

  explicit Waits(JobState& state) : state_(state) {}

  // Until the use is complete; null event: until all work of its stream is.
  void Await(Use use, CUevent event, StallCause cause) SPILLWAY_EXCLUDES(kStateLock);
  // `deadline_ns`: monotonic time.
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  void AwaitOneOf(const Awaited& awaited, StallCause cause, std::uint64_t deadline_ns = kNever)
      SPILLWAY_EXCLUDES(kStateLock);
  Awaited WithEvents(const FirstUses& uses) SPILLWAY_REQUIRES(kStateLock);
  // False after an error.
  bool AwaitQuietly(Use use) SPILLWAY_EXCLUDES(kStateLock);

  // Until `is_there`, called with the state lock held. False without progress on the device.
  bool AwaitProgress(base::FunctionRef<bool()> is_there, VainWaits* vain_waits = nullptr)
      SPILLWAY_EXCLUDES(kStateLock);

  void AwaitTurn(protocol::Direction direction) SPILLWAY_EXCLUDES(kStateLock);
  void AwaitTurnOf(std::int64_t wait_ns) SPILLWAY_EXCLUDES(kStateLock);

  StallClock::Moment BeginStall() SPILLWAY_EXCLUDES(kStateLock);
  void EndStall(const StallClock::Moment& begun, StallCause cause) SPILLWAY_REQUIRES(kStateLock) {
    stall_clock_.Ended(begun, cause, &state_.counters);
  }
  Counters Settled() const SPILLWAY_REQUIRES(kStateLock) {
    return stall_clock_.Settled(state_.counters);
  }
  void Release() SPILLWAY_REQUIRES(kStateLock) { stall_clock_.Release(); }

 private:
  JobState& state_;
  StallClock stall_clock_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
