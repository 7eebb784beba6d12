// Evictions: which range leaves, how its bytes get to the host, when its memory is free.
#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/residency.h"

namespace spillway::interposer {

using driver::Driver;

bool Residency::StartMakingRoom(size_t bytes, LeaveFirst order) {
  if (order == LeaveFirst::kFurthestUse) candidates_.clear();  // next uses change with each event
  while (!WillHaveRoom(bytes)) {
    timeline_->CheckpointEveryOperation();
    Range* victim = Victim(order, [](const Range&) { return true; });
    if (!victim) return false;
    if (StartLeaving(victim, TraceCause::kRoom)) continue;
    // There is no host memory for its bytes. A range with a valid host copy needs none.
    victim = Victim(order, [](const Range& range) { return range.host_valid; });
    if (!victim || !StartLeaving(victim, TraceCause::kRoom)) return false;
  }
  return true;
}

bool Residency::StartEviction(Range* range) {
  if (!ordering_rules::kPlansSpareNamedMemory)
    return range->place == Place::kDevice && StartLeaving(range, TraceCause::kPlan);
  if (!ordering_rules::kDropsAreChecked &&
      (range->host_valid = range->host_valid || TakeHostBuffer(range)))
    range->copied_at = timeline_->UndocumentedBegun();
  return MayLeave(*range) && CloseFastPath(range) && !IsHeld(range) &&
         StartLeaving(range, TraceCause::kPlan);
}

bool Residency::StartDrop(Range* range) {
  if (!MayLeave(*range) || !CloseFastPath(range) || IsHeld(range)) return false;
  GiveHostCopy(range);
  range->drops = true;
  range->departure.Clear();
  range->departure.Merge(range->uses);
  range->departure.Merge(range->ready_after);
  for (Use use : range->departure.items()) timeline_->EventFor(use);
  NoteUnusedPrefetch(range);
  range->place = Place::kLeaving;
  leaving_.push_back(range);
  TraceNow(TraceKind::kDropped, range, TraceCause::kPlan);
  return true;
}

size_t Residency::PendingBytes() const {
  size_t bytes = 0;
  for (const Range* range : leaving_) bytes += range->size_bytes;
  for (const Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range))
    bytes += range->place == Place::kDevice && !range->pins ? range->size_bytes : 0;
  return bytes;
}

bool Residency::MayLeave(const Range& range) {
  return range.place == Place::kDevice && range.pins == 0 && range.unmovable == Unmovable::kNo &&
         range.holds == 0 && range.live;
}

// Work that waits for the program would hold up the range's copy, and all behind it.
bool Residency::IsHeld(const Range* range) {
  return timeline_->AnyHeld(range->uses) || timeline_->AnyHeld(range->ready_after);
}

// Candidates are sorted once for many evictions. The order by recency stays right: a range used
// meanwhile, as last_touch shows, belongs behind all others. The victim's fast path is closed, so
// no call can begin to use it without the lock. A range that a call names is in use.
template <class Accepts>
Range* Residency::Victim(LeaveFirst order, Accepts accepts) {
  for (bool is_new = false;; is_new = true) {
    while (!candidates_.empty()) {
      const Candidate candidate = candidates_.back();
      candidates_.pop_back();
      Range* const range = candidate.range;
      const bool is_same =
          range->life == candidate.life && range->last_touch == candidate.last_touch;
      if (is_same && MayLeave(*range) && accepts(*range) && CloseFastPath(range) && !IsHeld(range))
        return range;
    }
    if (is_new) return nullptr;
    SortCandidates(order);
  }
}

void Residency::SortCandidates(LeaveFirst order) {
  for (const auto& range : ranges_) {
    if (MayLeave(*range))
      candidates_.push_back({range.get(), range->life, range->last_touch, range->next_use});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [order](const Candidate& a, const Candidate& b) {
              const bool by_use = order == LeaveFirst::kFurthestUse && a.next_use != b.next_use;
              return by_use ? a.next_use < b.next_use : a.last_touch > b.last_touch;
            });
}

// A good host copy of a resident range is a convenience: its buffer serves data that must leave.
// Bytes that are already evicted can wait in ordinary memory. What the present call names comes
// last: it is about to be used.
bool Residency::TakeHostBuffer(Range* range) {
  const auto take = [&] {
    return (range->serves_parked && host_.TakeMappable(range->size_bytes, &range->host)) ||
           host_.Take(range->size_bytes, &range->host);
  };
  if (range->host.data || take()) return true;
  for (const bool is_named : {false, true}) {
    for (const auto& other : ranges_) {
      const bool is_spare = other->place == Place::kDevice && other->host_valid && !other->empty;
      if (!is_spare || (other->pins > 0) != is_named) continue;
      GiveHostCopy(other.get());
      if (take()) return true;
    }
    for (Range* freed = freed_.oldest(); freed; freed = FreedRanges::Younger(freed)) {
      if (freed->place != Place::kParked || !IsIdle(freed)) continue;
      Unpark(freed);
      if (take()) return true;
    }
    for (const auto& other : ranges_) {
      if (other->place != Place::kHost || (other->pins > 0) != is_named) continue;
      if (host_.MakeOrdinary(&other->host) && take()) return true;
    }
  }
  return false;
}

void Residency::GiveUpSpareCopies() {
  for (const auto& range : ranges_) {
    if (!host_.IsOverLimit()) return;
    if (range->place == Place::kDevice && range->host_valid && range->pins == 0)
      GiveHostCopy(range.get());
  }
}

// Note [Good host copies]
// Each call that may write the range outdates its host copy. A kernel may also write memory that no
// call names, by an address hidden anywhere. Documents rule that out only for launches in library
// calls. So a copy is good while no other launch has begun since it was made, and none was running
// then. Otherwise the bytes are copied out again, over the old ones. That verifies them.
bool Residency::HasGoodHostCopy(const Range* range) const {
  return range->host_valid && (!ordering_rules::kHostCopiesAreVerified ||
                               range->copied_at == timeline_->UndocumentedBegun());
}

std::uint64_t Residency::CountUndocumented() {
  const std::uint64_t begun = timeline_->UndocumentedBegun();
  return timeline_->AllUndocumentedDone() ? begun : Range::kNeverGood;
}

bool Residency::StartLeaving(Range* range, TraceCause why) {
  range->departure.Clear();
  if (HasGoodHostCopy(range)) {
    range->departure.Merge(range->uses);
    range->departure.Merge(range->ready_after);
    for (Use use : range->departure.items()) timeline_->EventFor(use);
    counters_->dropped_bytes += range->requested_bytes;
    TraceNow(TraceKind::kDropped, range, why);
  } else if (!CopyOut(range, why)) {
    return false;
  }
  NoteUnusedPrefetch(range);
  range->place = Place::kLeaving;
  leaving_.push_back(range);
  return true;
}

bool Residency::CopyOut(Range* range, TraceCause why) {
  if (!TakeHostBuffer(range)) return false;
  if (ordering_rules::kHostBufferWaitsForCopy) {
    for (Use use : range->host.busy.items()) timeline_->OrderAfter(to_host_, use);
  }
  range->host.busy.Clear();
  for (Use use : range->ready_after.items()) timeline_->OrderAfter(to_host_, use);
  if (ordering_rules::kOffloadFollowsUses) {
    for (Use use : range->uses.items()) timeline_->OrderAfter(to_host_, use);
  }
  range->copied_at = CountUndocumented();
  if (range->host_valid) counters_->verified_bytes += range->requested_bytes;
  const TraceMoment begun = trace_->Begin(streams_[0]);
  if (Driver().cuMemcpyDtoHAsync_v2(range->host.data, range->base, range->requested_bytes,
                                    streams_[0]) != CUDA_SUCCESS) {
    trace_->Cancel(begun);
    return false;
  }
  trace_->End(streams_[0], begun, TraceOf(TraceKind::kCopyOut, range, why));
  const Use use = timeline_->Issue(to_host_);
  timeline_->EventFor(use);
  range->departure.Add(use);
  counters_->offloaded_bytes += range->requested_bytes;
  if (why == TraceCause::kPlan) counters_->planned_offloaded_bytes += range->requested_bytes;
  link_.Copied(protocol::Direction::kToHost, static_cast<std::int64_t>(range->requested_bytes));
  return true;
}

// Evictions do not complete in their order. A copy stands behind other copies, while dropped or
// freed memory only awaits its last use.
FirstUses Residency::NextToAwait() {
  FirstUses first;
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place == Place::kDevice && range->pins == 0)
      first.Add(timeline_->OneToAwait(&range->ready_after));
  }
  for (Range* range : leaving_) first.Add(timeline_->OneToAwait(&range->departure));
  return first;
}

void Residency::CollectLeaving() {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    Range* range = *it;
    if (ordering_rules::kUnmapWaitsForCompletion && !Timeline::AllKnownDone(&range->departure)) {
      ++it;
      continue;
    }
    it = leaving_.erase(it);
    FinishLeaving(range);
  }
}

void Residency::FinishLeaving(Range* range) {
  driver::MemUnmap(range->base, range->size_bytes);
  chunks_.Give(&range->chunks);
  const bool drops = std::exchange(range->drops, false);
  range->place = drops ? Place::kDropped : Place::kHost;
  counters_->recompute_drops += drops;
  counters_->recompute_dropped_bytes += drops ? range->requested_bytes : 0;
  range->host_valid = false;
  range->departure.Clear();
  range->uses.Clear();
  range->ready_after.Clear();
  range->ordered.clear();
  ++counters_->evictions;
  TraceNow(TraceKind::kLeft, range);
  if (parking_ && !drops && ordering_rules::kEvictedMemoryIsParked) Park(range);
}

void Residency::NoteUnusedPrefetch(Range* range) {
  if (!std::exchange(range->prefetched, false)) return;
  ++counters_->prefetches_unused;
  TraceNow(TraceKind::kPrefetchUnused, range);
}

}  // namespace spillway::interposer
