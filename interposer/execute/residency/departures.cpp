#include "interposer/execute/residency/departures.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"
#include "interposer/execute/state/recompute_record.h"

namespace spillway::interposer {
bool Departures::StartMakingRoom(size_t bytes, LeaveFirst order) {
  if (order == LeaveFirst::kFurthestUse) candidates_.clear();  // next uses change with each event
  while (!WillHaveRoom(bytes)) {
    parts_.timeline->CheckpointEveryOperation();
    Range* victim = IdleWorkspace();
    if (!victim) victim = Victim(order, [](const Range&) { return true; });
    if (!victim) return false;
    if (StartLeaving(victim, TraceCause::kRoom)) continue;
    // There is no host memory for its bytes. A range with a valid host copy needs none.
    victim = Victim(order, [](const Range& range) { return range.host_valid; });
    if (!victim || !StartLeaving(victim, TraceCause::kRoom)) return false;
  }
  return true;
}

bool Departures::WillHaveRoom(size_t bytes) const {
  size_t pending_bytes = parts_.freed->PendingBytes();
  for (const Range* range : leaving_) pending_bytes += range->size_bytes;
  const ChunkPool& chunks = *parts_.chunks;
  return chunks.ObtainableBytes() + pending_bytes >= bytes + chunks.ExcessBytes();
}

bool Departures::Start(Range* range) {
  if (!ordering_rules::kPlansSpareNamedMemory)
    return range->place == Place::kDevice && StartLeaving(range, TraceCause::kPlan);
  if (!ordering_rules::kDropsAreChecked &&
      (range->host_valid = range->host_valid || TakeHostBuffer(range)))
    range->copied_at = parts_.timeline->UndocumentedBegun();
  return MayLeaveNow(range) && StartLeaving(range, TraceCause::kPlan);
}

// Its fast path is closed: no call can begin to use it without the lock.
bool Departures::MayLeaveNow(Range* range) {
  return MayLeave(*range) && parts_.uses->CloseFastPath(range) && !parts_.uses->IsHeld(range);
}

bool Departures::StartDrop(Range* range) {
  if (!MayLeaveNow(range)) return false;
  if (!range->record->is_insured) {
    parts_.copies->Give(range);
    parts_.uses->GatherDeparture(range);
  } else if (!StartCopying(range, TraceCause::kPlan)) {
    return false;
  }
  range->drops = true;
  Leaves(range);
  TraceDrop(parts_.trace, range, TraceCause::kPlan, "recomputable");
  return true;
}

// Candidates are sorted once for many evictions. The order by recency stays right: a range used
// meanwhile, as last_touch shows, belongs behind all others. A range that a call names is in use.
template <class Accepts>
Range* Departures::Victim(LeaveFirst order, Accepts accepts) {
  for (bool is_new = false;; is_new = true) {
    while (!candidates_.empty()) {
      const Candidate candidate = candidates_.back();
      candidates_.pop_back();
      Range* const range = candidate.range;
      const bool is_same =
          range->life == candidate.life && range->last_touch == candidate.last_touch;
      if (is_same && accepts(*range) && MayLeaveNow(range)) return range;
    }
    if (is_new) return nullptr;
    SortCandidates(order);
  }
}

void Departures::SortCandidates(LeaveFirst order) {
  for (const auto& range : parts_.ranges->all()) {
    if (MayLeave(*range))
      candidates_.push_back({range.get(), range->life, range->last_touch, range->next_use});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [order](const Candidate& a, const Candidate& b) {
              const bool by_use = order == LeaveFirst::kFurthestUse && a.next_use != b.next_use;
              return by_use ? a.next_use < b.next_use : a.last_touch > b.last_touch;
            });
}

void Departures::AddIdleWorkspace(Range* range) {
  std::erase(idle_workspaces_, range);
  idle_workspaces_.push_back(range);
}

size_t Departures::IdleWorkspaceBytes() const {
  return std::accumulate(idle_workspaces_.begin(), idle_workspaces_.end(), size_t{0},
                         [](size_t sum, const Range* range) {
                           const bool is_there = range->live && range->is_idle_workspace &&
                                                 range->place == Place::kDevice;
                           return sum + (is_there ? range->size_bytes : 0);
                         });
}

Range* Departures::IdleWorkspace() {
  std::erase_if(idle_workspaces_, [](const Range* range) { return !range->is_idle_workspace; });
  const auto found = std::find_if(idle_workspaces_.begin(), idle_workspaces_.end(),
                                  [this](Range* range) { return MayLeaveNow(range); });
  return found == idle_workspaces_.end() ? nullptr : *found;
}

// A good host copy of a resident range is a convenience: its buffer serves data that must leave.
// Bytes that are already evicted can wait in ordinary memory. What the present call names comes
// last: it is about to be used.
bool Departures::TakeHostBuffer(Range* range) {
  HostPool& pool = parts_.copies->pool();
  const auto take = [&] {
    if (range->arena) return pool.TakeMappable(range->size_bytes, &range->host);
    return (range->serves_parked && pool.TakeMappable(range->size_bytes, &range->host)) ||
           pool.Take(range->size_bytes, &range->host);
  };
  if (range->host.data || take()) return true;
  for (const bool is_named : {false, true}) {
    for (const auto& other : parts_.ranges->all()) {
      const bool is_spare = other->place == Place::kDevice && other->host_valid && !other->empty;
      if (!is_spare || (other->pins > 0) != is_named) continue;
      parts_.copies->Give(other.get());
      if (take()) return true;
    }
    if (parts_.freed->DiscardParkedUntil(take)) return true;
    for (const auto& other : parts_.ranges->all()) {
      if (other->place != Place::kHost || (other->pins > 0) != is_named) continue;
      if (pool.MakeOrdinary(&other->host) && take()) return true;
    }
  }
  return false;
}

bool Departures::StartLeaving(Range* range, TraceCause why) {
  if (StartWithoutContent(range)) {
    TraceDrop(parts_.trace, range, why, "idle workspace");
  } else if (parts_.copies->IsGood(range)) {
    parts_.uses->GatherDeparture(range);
    NoteClean(range, why, "clean");
  } else if (!StartComparing(range) && !StartCopying(range, why)) {
    return false;
  }
  Leaves(range);
  return true;
}

// While evicted memory is parked, all of it has a host copy.
bool Departures::StartWithoutContent(Range* range) {
  if (!range->is_idle_workspace || parts_.parked->is_on()) return false;
  parts_.copies->Give(range);
  parts_.uses->GatherDeparture(range);
  parts_.counters->workspace_dropped_bytes += range->requested_bytes;
  return true;
}

// Whether the host copy still is the content is known when the departure is complete.
bool Departures::StartComparing(Range* range) {
  if (!range->host_valid || !range->print_is_valid) return false;
  parts_.uses->GatherDeparture(range);
  return parts_.checks->BeginCompare(range);
}

bool Departures::StartCopying(Range* range, TraceCause why) {
  range->departure.Clear();
  if (!TakeHostBuffer(range) || !parts_.copies->Out(range, why)) return false;
  parts_.checks->NoteCopied(range);
  return true;
}

void Departures::NoteClean(Range* range, TraceCause why, const char* as) {
  parts_.counters->dropped_bytes += range->requested_bytes;
  TraceDrop(parts_.trace, range, why, as);
}

void Departures::Leaves(Range* range) {
  NoteUnusedPrefetch(range);
  range->place = Place::kLeaving;
  leaving_.push_back(range);
}

// A copy under way may miss what comes from now on, so that nobody may compare with it.
void Departures::Cancel(Range* range) {
  if (range->content_print == Range::kNoPrint) range->print_is_valid = false;
  Forget(range);
  range->place = Place::kDevice;
  range->uses.Merge(range->departure);
  range->host_valid = !std::exchange(range->drops, false) && range->host.data;
  ++parts_.counters->cancelled_evictions;
}

void Departures::Forget(Range* range) {
  leaving_.remove(range);
  if (range->drops) parts_.checks->EndComparisons(range->record);
  if (range->content_print != Range::kNoPrint) parts_.checks->Forget(range);
}

void Departures::CancelAll() {
  while (!leaving_.empty()) {
    Range* const range = leaving_.front();
    Cancel(range);
    if (parts_.parked->is_on()) parts_.copies->Give(range);
  }
}

// Evictions do not complete in their order. A copy stands behind other copies, while dropped memory
// only awaits its last use.
void Departures::AddNextTo(FirstUses* first) {
  for (Range* range : leaving_) first->Add(parts_.timeline->OneToAwait(&range->departure));
}

size_t Departures::BytesBesidePieces() const {
  size_t bytes = 0;
  for (const Range* range : leaving_) {
    if (parts_.uses->IsHeld(range)) continue;
    for (const Chunk* chunk : range->chunks) bytes += chunk->IsPiece() ? 0 : chunk->bytes;
  }
  return bytes;
}

void Departures::Collect() {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    Range* range = *it;
    if (ordering_rules::kUnmapWaitsForCompletion && !Timeline::AllKnownDone(&range->departure)) {
      ++it;
      continue;
    }
    if (IsOutdated(range)) {
      ++it;
      if (StartCopying(range, TraceCause::kRoom)) continue;
      Cancel(range);
      parts_.copies->Give(range);
      continue;
    }
    it = leaving_.erase(it);
    Finish(range);
  }
}

// A fingerprint has shown that the host copy is another content, or that the record would make
// another one. Asked once.
bool Departures::IsOutdated(Range* range) {
  if (range->drops) return IsRecordOutdated(range);
  if (range->content_print == Range::kNoPrint) return false;
  const bool is_same = parts_.checks->IsUnchanged(range);
  (is_same ? parts_.counters->clean_by_content_bytes : parts_.counters->changed_by_content_bytes) +=
      range->requested_bytes;
  if (is_same) NoteClean(range, TraceCause::kRoom, "same content");
  return ordering_rules::kContentIsCompared && !is_same;
}

bool Departures::IsRecordOutdated(Range* range) {
  RecomputeRecord* const record = range->record;
  const bool is_same = parts_.checks->AllEqual(*record);
  parts_.checks->EndComparisons(record);
  if (is_same || !ordering_rules::kPresumedReadsAreCompared) return false;
  parts_.counters->changed_by_content_bytes += range->requested_bytes;
  record->is_outdated = true;
  range->drops = false;
  return true;
}

void Departures::Finish(Range* range) {
  driver::MemUnmap(range->base, range->size_bytes);
  parts_.layout->Gave(*range, IterationLayout::Why::kMoves);
  Chunks chunks = range->NoteUnmapped();
  parts_.chunks->Give(&chunks);
  const bool drops = std::exchange(range->drops, false);
  range->place = drops ? Place::kDropped : range->host.data ? Place::kHost : Place::kNowhere;
  parts_.counters->recompute_drops += drops;
  parts_.counters->recompute_dropped_bytes += drops ? range->requested_bytes : 0;
  range->host_valid = false;
  range->departure.Clear();
  range->uses.Clear();
  range->ready_after.Clear();
  range->ordered.clear();
  ++parts_.counters->evictions;
  TraceNow(parts_.trace, TraceKind::kLeft, range);
  if (parts_.parked->is_on() && !drops && ordering_rules::kEvictedMemoryIsParked)
    parts_.parked->Park(range);
}

void Departures::NoteUnusedPrefetch(Range* range) {
  if (!std::exchange(range->prefetched, false)) return;
  ++parts_.counters->prefetches_unused;
  TraceNow(parts_.trace, TraceKind::kPrefetchUnused, range);
}

}  // namespace spillway::interposer
