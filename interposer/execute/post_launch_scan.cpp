#include "interposer/execute/post_launch_scan.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

void PostLaunchScan::AwaitNewWork() {
  if (!ordering_rules::kNewKernelsAreNoted) return;
  {
    const StateLock lock(state_.locks);
    parking_.NoteDue(state_.pointer_safety.AwaitNewWork());
  }
  BeginParkingIfDue();
}

bool PostLaunchScan::BeginNew() {
  if (!ordering_rules::kNewKernelsAreNoted || !parking_.scans()) return false;
  {
    const StateLock lock(state_.locks);
    if (!state_.pointer_safety.WantsScans()) {
      parking_.UpdateScans();
      return false;
    }
    parking_.NoteDue(state_.pointer_safety.BeginNew());
  }
  BeginParkingIfDue();
  return true;
}

bool PostLaunchScan::EndNew(const Addresses& addresses, const TouchSet& set, bool ran) {
  const bool is_to_see = ran && set.stream && !set.stream->foreign && !set.recorded;
  const Finding finding = is_to_see ? Scan(addresses, set) : Finding::kNothing;
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  const StateLock lock(state_.locks);
  const bool is_proven_again = state_.pointer_safety.EndNew(finding);
  parking_.UpdateScans();
  if (finding == Finding::kUnknown) scans_from_launch_ = 2 * state_.timeline.Sum().launches;
  if (is_proven_again || finding == Finding::kAddress) parking_.UpdateParking();
  return is_to_see && finding == Finding::kNothing;
}

void PostLaunchScan::BeginParking() {
  {
    const StateLock lock(state_.locks);
    parking_.UpdateParking();
  }
  replays_.EndRecordsIfUnproven();
  parking_.AwaitRestores();
}

// A thread that finds parking due waits until it is done, by whichever thread.
void PostLaunchScan::BeginParkingIfDue() {
  {
    const StateLock lock(state_.locks);
    if (!parking_.is_due()) return;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const driver::RelaxedCapture relaxed(CapturesGoOn());
  const driver::CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  BeginParking();
}

Finding PostLaunchScan::Scan(const Addresses& addresses, const TouchSet& set) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  if (!AwaitWork(set.use)) return Finding::kUnknown;
  const MakingLock making(state_.locks);  // slabs stay in place
  stored_.FindVariables();
  std::vector<MemoryScan::Part> parts;
  HostBuffer staging;
  {
    const StateLock lock(state_.locks);
    ++state_.counters.post_launch_scans;
    if (AnyEvictedHoldsUnexplained(set)) return Finding::kAddress;
    if (!scan_.TakeStaging(&staging)) return Finding::kUnknown;
    parts = PartsReached(addresses, set);
  }
  const bool found =
      stored_.FoundNewOnHost(set) ||
      std::any_of(parts.begin(), parts.end(), [&](const MemoryScan::Part& part) {
        return scan_.HoldsUnexplained(part, staging, MemoryScan::Depth::kAfterLaunch);
      });
  const StateLock lock(state_.locks);
  state_.residency.host().Give(&staging);
  scan_.LetGo(parts);
  return found ? Finding::kAddress : Finding::kNothing;
}

// After a wait in vain, scans pause until the job has made as many launches again.
bool PostLaunchScan::AwaitWork(Use use) {
  {
    const StateLock lock(state_.locks);
    if (state_.timeline.Sum().launches < scans_from_launch_) return false;
    state_.timeline.EventFor(use);
  }
  const TraceMoment begun = state_.trace.BeginHere();
  const StallClock::Moment stalled = waits_.BeginStall();
  const bool is_over = waits_.AwaitProgress(
      [&]() SPILLWAY_REQUIRES(kStateLock) { return state_.timeline.Done(use); });
  state_.trace.EndHere(begun, StallEvent(StallCause::kIdle));
  const StateLock lock(state_.locks);
  waits_.EndStall(stalled, StallCause::kIdle);
  return is_over;
}

bool PostLaunchScan::AnyEvictedHoldsUnexplained(const TouchSet& set) {
  return std::any_of(
      set.ranges.begin(), set.ranges.end(), [this](Range* range) SPILLWAY_REQUIRES(kStateLock) {
        return range->live &&
               scan_.HostCopyHoldsUnexplained(*range, MemoryScan::Depth::kAfterLaunch);
      });
}

std::vector<MemoryScan::Part> PostLaunchScan::PartsReached(const Addresses& addresses,
                                                           const TouchSet& set) {
  std::vector<MemoryScan::Part> parts;
  for (CUdeviceptr address : addresses) {
    const Allocation* const found = state_.ledger.Find(address);
    if (found && IsBlock(found)) parts.push_back({found->base, found->requested_bytes, nullptr});
  }
  for (Range* range : set.ranges) {
    if (!range->live || !IsMapped(range) || range->empty) continue;
    state_.residency.Pin(range);
    parts.push_back({range->base, range->requested_bytes, range});
  }
  for (const StoredAddresses::Global& global : stored_.globals())
    parts.push_back({global.base, global.bytes, nullptr});
  return parts;
}

}  // namespace spillway::interposer
