#include "interposer/execute/grants.h"

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

// Null: none, none that fits, or nothing may begin now.
Range* Grants::NextToBringBack() {
  Residency& residency = state_.residency;
  if (residency.parking() || residency.copies().link().WaitNs(protocol::Direction::kToDevice) > 0)
    return nullptr;
  Range* next = nullptr;
  residency.ForEachLive([&](Range* range) {
    const bool is_later = !next || range->last_touch > next->last_touch;
    if (range->place == Place::kHost && is_later) next = range;
  });
  const bool fits =
      next && residency.chunks().held_bytes() + next->size_bytes <= state_.budget.bytes();
  return fits ? next : nullptr;
}

// Asks the driver nothing unless there is something to do: it is called again and again.
void Grants::BringBack() {
  {
    const StateLock lock(state_.locks);
    if (!NextToBringBack()) return;
  }
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  bool has_more = true;
  while (has_more) {
    const StateLock lock(state_.locks);
    Range* const next = NextToBringBack();
    has_more = next && state_.residency.Restore(next, TraceCause::kPrefetch);
  }
}

void Grants::SetBudget(size_t bytes) {
  GrantBudget(bytes);
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

bool Grants::JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file) {
  const StateLock lock(state_.locks);
  return state_.residency.copies().link().Join(terms_file, lanes_file, place.layout, place.slot);
}

void Grants::FollowSchedule() {
  if (const auto bytes = schedule_.CountLaunch()) SetBudget(*bytes);
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
