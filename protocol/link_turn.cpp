#include "protocol/link_turn.h"

#include <algorithm>

#include "base/units.h"

namespace spillway::protocol {
namespace {

constexpr uint64_t kTagsPerByte = 1024;  // lets weights up to some hundreds divide well
// Per request that goes first.
constexpr int64_t kRetryWait_ns = 50'000;
// The longest single wait: the lane may change meanwhile.
constexpr int64_t kMostWait_ns = 10'000'000;
// Lost races in a row before a process yields.
constexpr int kAttempts = 8;
// How late a process may ask again and keep its place.
constexpr int64_t kGrace_ns = 1'000'000;
// Added to the bound for clocks, timers and the scheduler.
constexpr int64_t kSlack_ns = 20'000'000;
// Note [Starved processes copy alone]
constexpr int kMostLateAdmissions = 3;
constexpr int64_t kAlone_ns = 1'000'000'000;

// Tags wrap around after years; only their order counts.
bool IsBefore(uint64_t tag, uint64_t other) { return static_cast<int64_t>(tag - other) < 0; }

int64_t RateOf(const LinkTerms& terms, Direction direction) {
  return terms.bytes_per_second[static_cast<size_t>(direction)].load(std::memory_order_relaxed);
}

// An unset rate means no limit.
int64_t CopyTimeAt(int64_t rate, int64_t size_bytes) {
  return rate <= 0 ? 0 : base::transfer_ns(size_bytes, rate);
}

uint32_t SlotsOf(const LinkTerms& terms) {
  return std::min(terms.slots_used.load(std::memory_order_acquire), kLinkSlots);
}

void Raise(std::atomic<uint64_t>& highest, uint64_t tag) {
  uint64_t seen = highest.load(std::memory_order_relaxed);
  while (IsBefore(seen, tag) &&
         !highest.compare_exchange_weak(seen, tag, std::memory_order_relaxed)) {
  }
}

}  // namespace

int64_t LatestPlausibleFreeNs(const LinkTerms& terms, Direction direction, int64_t now_ns) {
  const int64_t copy_ns = CopyTimeAt(RateOf(terms, direction), LinkTurn::kMostBytes);
  return now_ns + terms.ahead_ns.load(std::memory_order_relaxed) + (SlotsOf(terms) + 1) * copy_ns;
}

int64_t LinkTurn::Ask(Direction direction, int64_t size_bytes, int64_t now_ns) {
  LinkLane& lane = Lane(direction);
  Request& request = requests_[static_cast<size_t>(direction)];
  if (now_ns < request.private_until_ns)
    return AskPrivateBucket(lane, direction, size_bytes, now_ns);
  if (!request.waits) Begin(request, lane, direction, size_bytes, now_ns);
  const bool late = now_ns >= request.latest_ns;
  const int64_t queued_ns =
      std::max<int64_t>(lane.free_at_ns.load(std::memory_order_acquire), 0) - now_ns;
  const int64_t ahead_ns = terms_.ahead_ns.load(std::memory_order_relaxed);
  if (!late && queued_ns > ahead_ns) return Wait(lane, request, queued_ns - ahead_ns, now_ns);
  const Queue queue = Look(lane, request.tag, now_ns);
  // The first in the queue may fill half of `ahead_ns`. Below that anyone may copy, so that the
  // link never idles.
  const int64_t spare_ns = queued_ns - ahead_ns / 2;
  if (!late && spare_ns > 0 && queue.before > 0) {
    return Wait(lane, request, std::min(spare_ns, queue.before * kRetryWait_ns), now_ns);
  }
  if (!Reserve(lane, direction, size_bytes, now_ns, late))
    return Wait(lane, request, kRetryWait_ns, now_ns);
  Raise(lane.reached_tag, queue.smallest_tag);
  NoteLateness(request, late && queued_ns > ahead_ns, now_ns);
  Admit(lane, direction, size_bytes, now_ns, queued_ns);
  return 0;
}

int64_t LinkTurn::AskPrivateBucket(LinkLane& lane, Direction direction, int64_t size_bytes,
                                   int64_t now_ns) {
  Request& request = requests_[static_cast<size_t>(direction)];
  const int64_t ahead_ns = terms_.ahead_ns.load(std::memory_order_relaxed);
  const int64_t queued_ns = std::max(request.own_free_at_ns, now_ns) - now_ns;
  if (queued_ns > ahead_ns) return std::min(queued_ns - ahead_ns, kMostWait_ns);
  request.own_free_at_ns = now_ns + queued_ns + OwnTime(direction, size_bytes);
  Reserve(lane, direction, size_bytes, now_ns, true);
  Admit(lane, direction, size_bytes, now_ns, queued_ns);
  return 0;
}

void LinkTurn::Admit(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns,
                     int64_t queued_ns) {
  Request& request = requests_[static_cast<size_t>(direction)];
  const int64_t ahead_ns = terms_.ahead_ns.load(std::memory_order_relaxed);
  request.last_tag = request.tag;
  request.served_ns =
      now_ns + std::clamp<int64_t>(queued_ns, 0, ahead_ns) + CopyTime(direction, size_bytes);
  lane.slots[slot_].admitted_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  Withdraw(direction);
}

void LinkTurn::NoteLateness(Request& request, bool is_refused, int64_t now_ns) {
  request.lates = is_refused ? request.lates + 1 : 0;
  if (request.lates < kMostLateAdmissions) return;
  request.lates = 0;
  request.private_until_ns = now_ns + kAlone_ns;
}

void LinkTurn::Withdraw(Direction direction) {
  requests_[static_cast<size_t>(direction)].waits = false;
  Lane(direction).slots[slot_].waits_until_ns.store(0, std::memory_order_release);
}

void LinkTurn::Begin(Request& request, const LinkLane& lane, Direction direction,
                     int64_t size_bytes, int64_t now_ns) const {
  const uint64_t present = lane.reached_tag.load(std::memory_order_relaxed);
  // A process that always wants more may have been overtaken when it asked late. It regains some of
  // that lead.
  const bool goes_on = now_ns <= request.served_ns + kGrace_ns;
  const uint64_t earliest = goes_on ? present - 2 * Cost(kMostBytes) : present;
  request.waits = true;
  request.tag =
      (IsBefore(request.last_tag, earliest) ? earliest : request.last_tag) + Cost(size_bytes);
  // Before this copy, other processes may do one copy each, plus what their weights allow
  // meanwhile. Twice that is generous.
  const int64_t own_ns = OwnTime(direction, size_bytes);
  request.latest_ns =
      now_ns + 2 * (own_ns + SlotsOf(terms_) * CopyTime(direction, kMostBytes)) + kSlack_ns;
}

LinkTurn::Queue LinkTurn::Look(const LinkLane& lane, uint64_t tag, int64_t now_ns) const {
  Queue queue = {0, tag};
  for (uint32_t i = 0; i < SlotsOf(terms_); ++i) {
    const LinkSlot& slot = lane.slots[i];
    if (i == slot_ || slot.waits_until_ns.load(std::memory_order_acquire) <= now_ns) continue;
    const uint64_t other = slot.tag.load(std::memory_order_relaxed);
    if (IsBefore(other, tag) || (other == tag && i < slot_)) ++queue.before;
    if (IsBefore(other, queue.smallest_tag)) queue.smallest_tag = other;
  }
  return queue;
}

// False if the lane is full or other processes won the race. A late request always succeeds. It
// leaves an implausible lane unchanged: the agent repairs the lane and knows the time, while this
// process may have slept since it read the clock.
bool LinkTurn::Reserve(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns,
                       bool late) const {
  const int64_t ahead_ns = terms_.ahead_ns.load(std::memory_order_relaxed);
  const int64_t believable_ns = LatestPlausibleFreeNs(terms_, direction, now_ns);
  int64_t seen_ns = lane.free_at_ns.load(std::memory_order_acquire);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!late && seen_ns > now_ns + ahead_ns) return false;
    if (seen_ns > believable_ns) return late;
    const int64_t free_at_ns = std::max(seen_ns, now_ns) + CopyTime(direction, size_bytes);
    if (lane.free_at_ns.compare_exchange_strong(seen_ns, free_at_ns, std::memory_order_acq_rel))
      return true;
  }
  return late;
}

int64_t LinkTurn::Wait(LinkLane& lane, const Request& request, int64_t wait_ns,
                       int64_t now_ns) const {
  const int64_t capped_ns = std::min({wait_ns, kMostWait_ns, request.latest_ns - now_ns});
  LinkSlot& slot = lane.slots[slot_];
  slot.tag.store(request.tag, std::memory_order_relaxed);
  slot.waits_until_ns.store(now_ns + capped_ns + kGrace_ns, std::memory_order_release);
  return capped_ns;
}

uint64_t LinkTurn::Cost(int64_t size_bytes) const {
  return static_cast<uint64_t>(size_bytes) * kTagsPerByte / Weight();
}

uint32_t LinkTurn::Weight() const {
  return std::max(terms_.weights[slot_].load(std::memory_order_relaxed), 1u);
}

int64_t LinkTurn::OwnTime(Direction direction, int64_t size_bytes) const {
  const uint32_t total = std::max(terms_.total_weight.load(std::memory_order_relaxed), Weight());
  return base::scale(CopyTime(direction, size_bytes), total, Weight());
}

int64_t LinkTurn::CopyTime(Direction direction, int64_t size_bytes) const {
  return CopyTimeAt(RateOf(terms_, direction), size_bytes);
}

}  // namespace spillway::protocol
