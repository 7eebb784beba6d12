#include "interposer/execute/waits.h"

#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "base/schedule_point.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/range_trace.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::Driver;

namespace {

// Note [Idle in vain]
// A stream may wait for something that the program does only after the call that waits here. So a
// wait ends when nothing on the device has completed for a while. It ends sooner when a stream is
// known to wait for the program. Time says nothing of what kernels reach: it also passes on a busy
// machine, or behind a long kernel. So a thread that waited in vain evicts nothing. Its call uses
// memory where it is parked, or gets none. A job whose memory can be parked waits ever less for the
// program (vain_waits.h).
constexpr std::uint64_t kProgressPatienceNs = 10'000'000'000;
constexpr std::uint64_t kPatienceWithTheProgramNs = 500'000'000;
constexpr std::uint64_t kBriefNs = 200'000;  // so long a wait polls without pauses
constexpr std::int64_t kNapNs = 50'000;

}  // namespace

// Without an event, waits for the whole stream. After an error the work is over, too.
void Waits::Await(Use use, CUevent event, StallCause cause) {
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  state_.timeline.NoteResult(event ? Driver().cuEventSynchronize(event)
                                   : Timeline::WaitFor(use.stream));
  if (!event) state_.timeline.Completed(use.stream, use.sequence);
  state_.trace.EndHere(begun, StallEvent(cause));
  const StateLock lock(state_.locks);
  EndStall(stalled, cause);
}

// No event says which use completes first, so they are polled in turn. A single use is waited for,
// and so is a stream without events. Both could outlast a deadline.
void Waits::AwaitOneOf(const Waits::Awaited& awaited, StallCause cause, std::uint64_t deadline_ns) {
  if (deadline_ns == kNever) {
    const auto has_none = [](const AwaitedUse& one) { return !one.event; };
    const AwaitedUse* const silent = std::find_if(awaited.begin(), awaited.end(), has_none);
    if (silent != awaited.end()) return Await(silent->use, nullptr, cause);
    if (awaited.size() == 1) return Await(awaited.front().use, awaited.front().event, cause);
  }
  const driver::RelaxedCapture relaxed(true);  // a capture may begin meanwhile, and forbid queries
  // Once a thread has seen the use complete, its event may mark another one.
  const auto is_over = [](const AwaitedUse& one) {
    return Timeline::KnownDone(one.use) ||
           (one.event && Driver().cuEventQuery(one.event) != CUDA_ERROR_NOT_READY);
  };
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = BeginStall();
  while (std::none_of(awaited.begin(), awaited.end(), is_over) && MonotonicNs() < deadline_ns)
    base::YieldToOthers();
  state_.trace.EndHere(begun, StallEvent(cause));
  const StateLock lock(state_.locks);
  EndStall(stalled, cause);
}

Waits::Awaited Waits::WithEvents(const FirstUses& uses) {
  Waits::Awaited awaited;
  for (Use use : uses.items()) awaited.push_back({use, state_.timeline.EventFor(use)});
  return awaited;
}

bool Waits::AwaitQuietly(Use use) {
  CUevent event = nullptr;
  {
    const StateLock lock(state_.locks);
    if (state_.timeline.Done(use)) return true;
    event = state_.timeline.EventFor(use);
  }
  if (!event) {
    Timeline::WaitFor(use.stream);
    return true;
  }
  return Driver().cuEventSynchronize(event) == CUDA_SUCCESS;
}

// (Note [Idle in vain])
bool Waits::AwaitProgress(base::FunctionRef<bool()> is_there, VainWaits* vain_waits) {
  std::uint64_t seen = 0, since_ns = MonotonicNs();
  bool is_held = false;
  for (;;) {
    const std::uint64_t waited_ns = MonotonicNs() - since_ns;
    {
      const StateLock lock(state_.locks);
      if (is_there()) {
        if (is_held && vain_waits) vain_waits->NoteWorthwhile();
        return true;
      }
      const std::uint64_t progress = state_.timeline.SumCompleted();
      is_held = state_.timeline.AnyStreamIsHeld();
      // A job that cannot park has nothing but the wait.
      const bool may_do_without = vain_waits && state_.pointer_safety.MayPark();
      const std::uint64_t with_the_program_ns =
          may_do_without ? vain_waits->PatienceNs(progress) : kPatienceWithTheProgramNs;
      if (is_held && with_the_program_ns == 0) return false;
      if (progress != seen) {
        since_ns = MonotonicNs();
      } else if (waited_ns > (is_held ? with_the_program_ns : kProgressPatienceNs)) {
        if (is_held && vain_waits) vain_waits->NoteFutile(progress);
        return false;
      }
      seen = progress;
    }
    waited_ns < kBriefNs || base::IsScheduled() ? base::YieldToOthers() : base::Pause(kNapNs);
  }
}

void Waits::AwaitTurn(protocol::Direction direction) {
  for (;;) {
    std::int64_t wait_ns;
    {
      const StateLock lock(state_.locks);
      wait_ns = state_.residency.copies().link().WaitNs(direction);
    }
    if (wait_ns == 0) return;
    AwaitTurnOf(wait_ns);
  }
}

void Waits::AwaitTurnOf(std::int64_t wait_ns) {
  const TraceMoment begun = state_.trace.BeginHere();
  const std::uint64_t start_ns = MonotonicNs();
  base::Pause(wait_ns);
  state_.trace.EndHere(begun, StallEvent(StallCause::kLinkShare));
  const StateLock lock(state_.locks);
  state_.counters.Stalled(StallCause::kLinkShare, MonotonicNs() - start_ns);
}

StallClock::Moment Waits::BeginStall() {
  const StateLock lock(state_.locks);
  return stall_clock_.Now();
}

}  // namespace spillway::interposer
