#include "interposer/execute/restores.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

bool IsInRun(const Range* range) { return range->run_piece != RunPiece::kNone; }

// What a call says of a piece, another call may have said of the run's other pieces.
bool IsContentDead(const Range* range, Role role) {
  return DiscardsOldBytes(role) && !IsInRun(range);
}

}  // namespace

bool Restores::MakeResident(Range* range, Role role) {
  if (!IsContentDead(range, role) && !spilling_.Load(range)) return false;
  StallCause cause;
  bool copies;
  {
    const StateLock lock(state_.locks);
    copies = !IsContentDead(range, role) &&
             (range->place == Place::kHost || range->place == Place::kParked);
    cause = range->place == Place::kNowhere         ? StallCause::kNoMemory
            : state_.executor.IsAskedFor(range->id) ? StallCause::kLatePrefetch
                                                    : StallCause::kDemand;
  }
  if (!AwaitUsesWhereParked(range, cause)) return false;
  if (copies) waits_.AwaitTurn(protocol::Direction::kToDevice);
  return eviction_.MakeRoom(range->size_bytes, cause, [&]() SPILLWAY_REQUIRES(kStateLock) {
    return IsMapped(range) || RestoreOnDemand(range, role);
  });
}

bool Restores::MakeAllResident(TouchSet* set) {
  const auto all_fit = [&]() SPILLWAY_REQUIRES(kStateLock) {
    return RangesThatFit(*set).size() == set->ranges.size();
  };
  state_.budget.Await(all_fit);
  if (std::any_of(set->ranges.begin(), set->ranges.end(),
                  [](const Range* range) { return range->is_released; }))
    state_.budget.AwaitReturn([&]() SPILLWAY_REQUIRES(kStateLock) {
      return all_fit() && state_.counters.UnmovableBytesSoon() <= state_.budget.bytes();
    });
  bool must_prepare;
  base::InlineVector<Range*, 32> fitting;
  {
    const StateLock lock(state_.locks);
    fitting = RangesThatFit(*set);
    must_prepare =
        !AllOnDevice(fitting) && state_.pointer_safety.MustPark() && parking_.MustPrepare();
  }
  const bool may_move = !must_prepare || parking_.PrepareToMove();
  const bool resident = may_move && MakeEachResident({fitting.begin(), fitting.size()}, *set);
  return (resident && fitting.size() == set->ranges.size()) || CanUseParked(*set);
}

// What must leave for all of them does so in one go, while the first ones come.
bool Restores::MakeEachResident(std::span<Range* const> ranges, const TouchSet& set) {
  size_t away_bytes = 0;
  bool is_prepared;
  {
    const StateLock lock(state_.locks);
    for (const Range* range : ranges) away_bytes += IsMapped(range) ? 0 : range->size_bytes;
    is_prepared = !parking_.MustPrepare();
  }
  if (ranges.size() > 1 && away_bytes > 0 && is_prepared) eviction_.BeginMakingRoom(away_bytes);
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](Range* range) SPILLWAY_REQUIRES(kMakingLock) {
                       return MakeResident(range, PromisedRoleOf(set, range));
                     });
}

bool Restores::BringBack(Range* range) {
  return eviction_.AwaitFreed(
      range->size_bytes, StallCause::kDemand, [&]() SPILLWAY_REQUIRES(kStateLock) {
        return IsMapped(range) || RestoreOnDemand(range, Role::kReadsAndWrites);
      });
}

bool Restores::RestoreAll() {
  TouchSet set;
  {
    const StateLock lock(state_.locks);
    state_.residency.departures().CancelAll();
    for (Range* range : state_.residency.LiveRanges()) {
      if (IsMapped(range)) continue;
      state_.residency.Pin(range);
      set.ranges.push_back(range);
    }
  }
  const bool all = MakeAllResident(&set);
  {
    const StateLock lock(state_.locks);
    for (Range* range : set.ranges) state_.residency.Unpin(range);
  }
  parking_.EndMoving();
  return all;
}

// A call that names more than fits on the device uses the rest parked: slower, not refused. A
// proven job's kernels reach what they name. Only that gets a mapping, and loses it when the call
// is complete (Residency::MayUnpark). Where all evicted memory is parked already, nothing changes.
// A job that waited in vain parks until the next full scan.
bool Restores::ParkEvicted(std::span<Range* const> ranges) {
  if (!state_.pointer_safety.MayPark() || state_.residency.copies().Health() != CUDA_SUCCESS)
    return false;
  if (parking_.wait_was_futile()) state_.pointer_safety.RequireFullScan();
  parking_.UpdateParking();
  return std::all_of(ranges.begin(), ranges.end(),
                     [this](Range* range) SPILLWAY_REQUIRES(kStateLock) {
                       return IsMapped(range) || state_.residency.parked().ParkForCall(range);
                     });
}

// Ranges that fit the budget together, resident ones first: the others are not worth moving.
base::InlineVector<Range*, 32> Restores::RangesThatFit(const TouchSet& set) {
  base::InlineVector<Range*, 32> fitting;
  const size_t budget_bytes = state_.budget.bytes();
  size_t bytes = 0;
  for (const bool mapped : {true, false}) {
    for (Range* range : set.ranges) {
      if (IsMapped(range) != mapped || range->size_bytes > budget_bytes - bytes) continue;
      if (state_.residency.parked().StaysParked(range)) continue;
      bytes += range->size_bytes;
      fitting.push_back(range);
    }
  }
  return fitting;
}

bool Restores::CanUseParked(const TouchSet& set) {
  const StateLock lock(state_.locks);
  const bool is_served = ParkEvicted({set.ranges.begin(), set.ranges.size()});
  state_.counters.parked_calls += is_served;
  return is_served;
}

// Only a proven job waits here: while a job parks, the device is idle by now. False where what must
// happen first may not be waited for.
bool Restores::AwaitUsesWhereParked(Range* range, StallCause cause) {
  for (;;) {
    Waits::Awaited next;
    {
      const StateLock lock(state_.locks);
      if (state_.residency.parked().StaysParked(range)) return false;
      if (range->place != Place::kParked || state_.residency.parked().MayUnpark(range)) return true;
      next = waits_.WithEvents(FirstUses(state_.timeline.OneToAwait(&range->uses)));
      if (next.empty()) return true;  // another thread's call is about to use it
    }
    waits_.AwaitOneOf(next, cause);
  }
}

bool Restores::RestoreOnDemand(Range* range, Role role) {
  const bool was_away = range->place != Place::kNowhere;
  const bool is_late = state_.executor.IsAskedFor(range->id);
  const auto content =
      IsContentDead(range, role) ? Residency::Content::kDead : Residency::Content::kWanted;
  if (!state_.residency.Restore(range, is_late ? TraceCause::kLatePrefetch : TraceCause::kDemand,
                                content))
    return false;
  state_.counters.demand_fetches += was_away;
  state_.counters.prefetches_late += state_.executor.TakeFromQueue(range);
  return true;
}

}  // namespace spillway::interposer
