#include "interposer/execute/grants.h"

#include <utility>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::CurrentContext;
using driver::RelaxedCapture;

void Grants::GrantBudget(size_t bytes) { ChangeBudget(bytes, 0); }

void Grants::HoldBudget(size_t bytes, std::uint64_t until_ns) { ChangeBudget(bytes, until_ns); }

void Grants::MeetBudget() {
  const std::uint64_t start_ns = MonotonicNs();
  if (!IsOverBudget()) return;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  {
    const MakingLock making(state_.locks);
    eviction_.MakeRoom(0, StallCause::kShrink,
                       [&]() SPILLWAY_REQUIRES(kStateLock) { return state_.residency.Charge(0); });
    parking_.EndMoving();
  }
  const StateLock lock(state_.locks);
  state_.counters.over_budget_ns += MonotonicNs() - start_ns;
}

bool Grants::MayBringBack() {
  Residency& residency = state_.residency;
  return !residency.parking() &&
         residency.copies().link().WaitNs(protocol::Direction::kToDevice) == 0;
}

bool Grants::HasRoomFor(const Range& range) {
  return state_.residency.chunks().held_bytes() + range.size_bytes <= state_.budget.bytes();
}

// The most recently used of the evicted ranges, in this order. One scan serves a batch: a job may
// have ten thousand ranges.
Grants::Batch Grants::NextToBringBack() {
  Batch batch;
  state_.residency.ForEachLive([&](Range* range) {
    if (range->place != Place::kHost || range->spilled) return;
    const bool is_full = batch.size() == kBatch;
    if (is_full && batch[kBatch - 1]->last_touch >= range->last_touch) return;
    is_full ? void(batch[kBatch - 1] = range) : batch.push_back(range);
    for (size_t at = batch.size() - 1; at > 0 && batch[at - 1]->last_touch < batch[at]->last_touch;
         --at)
      std::swap(batch[at - 1], batch[at]);
  });
  return batch;
}

// False: there is no more to do now.
bool Grants::BringBackBatch() {
  if (!MayBringBack()) return false;
  const Batch batch = NextToBringBack();
  for (Range* const range : batch) {
    if (!MayBringBack() || !HasRoomFor(*range) ||
        !state_.residency.Restore(range, TraceCause::kPrefetch))
      return false;
  }
  return !batch.empty();
}

// Nothing is looked for until memory or the budget has changed: it is called again and again.
bool Grants::MayHaveToBringBack() {
  const size_t held_bytes = state_.residency.chunks().held_bytes();
  const size_t budget_bytes = state_.budget.bytes();
  const size_t spilled_bytes = state_.residency.copies().spilled().stored_bytes();
  const bool is_known = BroughtBack{held_bytes, budget_bytes, spilled_bytes} == brought_back_;
  return !is_known && held_bytes < budget_bytes && MayBringBack();
}

void Grants::BringBack() {
  {
    const StateLock lock(state_.locks);
    if (!MayHaveToBringBack()) return;
  }
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  bool has_more = true;
  while (has_more) {
    const StateLock lock(state_.locks);
    has_more = BringBackBatch();
    if (!has_more && MayBringBack())
      brought_back_ = {state_.residency.chunks().held_bytes(), state_.budget.bytes(),
                       state_.residency.copies().spilled().stored_bytes()};
  }
}

void Grants::SetBudget(size_t bytes) {
  GrantBudget(bytes);
  {
    const StateLock lock(state_.locks);
    runs_.Release();
  }
  MeetBudget();
}

void Grants::SetHostLimit(size_t bytes) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.host_grant.SetLimit(bytes);
  state_.host_grant.UpdateLimits();
  state_.residency.GiveUpSpareCopies();
}

// Asks the driver nothing while there is nothing to do.
bool Grants::PrepareToLeave() {
  SlabRegions::Coming coming;
  bool is_expected;
  {
    const StateLock lock(state_.locks);
    is_expected = state_.host_grant.expects_all_to_leave();
    if (is_expected) coming = state_.residency.host().TakeAhead();
  }
  if (is_expected && coming.slabs.empty()) return false;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  if (is_expected) SlabRegions::Map(&coming);
  const StateLock lock(state_.locks);
  if (is_expected)
    state_.residency.host().AddAhead(coming);
  else
    state_.host_grant.ExpectAllToLeave(true);
  return !is_expected || coming.begin != nullptr;
}

bool Grants::JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file) {
  const StateLock lock(state_.locks);
  return state_.residency.copies().link().Join(terms_file, lanes_file, place.layout, place.slot);
}

void Grants::FollowSchedule() {
  for (const size_t bytes : schedule_.CountLaunch()) SetBudget(bytes);
}

// Calls that make memory see the new budget at once, so an excess does not grow.
void Grants::ChangeBudget(size_t bytes, std::uint64_t held_until_ns) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.budget.Set(bytes, held_until_ns);
  state_.residency.chunks().SetBudget(state_.budget.bytes());
  state_.host_grant.UpdateLimits();
  recording_.RecordIfOverBudget(0);
}

bool Grants::IsOverBudget() {
  const StateLock lock(state_.locks);
  return state_.residency.chunks().IsOverBudget();
}

}  // namespace spillway::interposer
