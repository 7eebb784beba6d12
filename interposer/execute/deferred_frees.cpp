#include "interposer/execute/deferred_frees.h"

#include <algorithm>
#include <utility>

#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

void DeferredFrees::GiveBack(Allocation* found, const UseList& busy) {
  const bool was_put_off = std::exchange(static_cast<Tracked*>(found)->free_is_due, false);
  state_.contents.Freed(found->base, found->size_bytes);
  if (IsBlock(found)) {
    const bool is_ours = std::exchange(AsBlock(found)->is_ours, false);
    if (is_ours) saved_input_bytes_ -= found->requested_bytes;
    state_.counters.frees += !is_ours;
    state_.slabs.Give(AsBlock(found), busy);
    return;
  }
  ++state_.counters.frees;
  if (was_put_off) {
    std::erase(put_off_, AsRange(found));
    put_off_bytes_.fetch_sub(found->size_bytes, std::memory_order_relaxed);
    state_.counters.put_off_bytes -= found->size_bytes;
  }
  state_.executor.Freed(found->id);
  if (const RecomputeRecord* const record = AsRange(found)->record) Forget(record);
  MarkEnds(busy);
  state_.ledger.RemoveRange(found);
  if (found->unmovable != Unmovable::kNo)
    state_.counters.UnmovableFor(found->unmovable).bytes -= found->size_bytes;
  found->unmovable = Unmovable::kNo;
  state_.counters.wanted_bytes -= found->size_bytes;
  TraceNow(&state_.trace, TraceKind::kFreed, AsRange(found));
  state_.residency.Free(AsRange(found), busy);
  state_.residency.spare().GiveBack(SpareRelease::After::kFree);
  state_.residency.TraceMemory();
}

void DeferredFrees::ReportFree(const Allocation* found) {
  if (IsBlock(found)) return;
  if (state_.recorder.IsRecording()) state_.recorder.Freed(found->id);
  if (state_.walk.IsActive()) state_.walk.Observe(scheduler::JobEvent::Free(found->id), nullptr);
}

void DeferredFrees::DeferFree(Tracked* memory) {
  memory->free_is_due = true;
  if (IsBlock(memory)) return;
  put_off_.push_back(AsRange(memory));
  put_off_bytes_.fetch_add(memory->size_bytes, std::memory_order_relaxed);
  state_.counters.put_off_bytes += memory->size_bytes;
}

bool DeferredFrees::IsStillNeeded(Tracked* memory) {
  if (state_.recompute_records.empty()) return false;
  if (!IsHeldForPlan(memory)) return EndRecordsOf(memory).range != nullptr;
  ++state_.counters.held_inputs;
  return ordering_rules::kHeldInputsStay;
}

// Ends the record and gives back freed memory that waited for it. That may end further records,
// whose inputs follow: one step per layer.
void DeferredFrees::Forget(const RecomputeRecord* record) {
  FreesThatAreDue due;
  ForgetOne(record, &due);
  while (!due.empty()) {
    Tracked* const memory = due[due.size() - 1];
    due.Truncate(due.size() - 1);
    const RecomputeRecord* const its_own = IsBlock(memory) ? nullptr : AsRange(memory)->record;
    if (its_own) ForgetOne(its_own, &due);
    GiveBack(memory, state_.timeline.Unfinished());
  }
}

// Records of dropped ranges that read it go on. One such range is returned: it must be recomputed
// first.
ToRecompute DeferredFrees::EndRecordsOf(Tracked* memory) {
  ToRecompute to_recompute;
  for (const std::uint64_t id : state_.recompute_records.Of(memory)) {
    const RecomputeRecord* const record = state_.recompute_records.Find(id);
    if (!record) continue;
    if (!IsDropped(record->output)) {
      Forget(record);
    } else if (record->output != memory) {
      to_recompute = {record->output, IsBlock(memory) ? AsBlock(memory) : nullptr};
    }
  }
  return to_recompute;
}

Range* DeferredFrees::FirstThatFreesAwait(bool even_held, const FutileRanges& in_vain) {
  RecomputeRecords::Ids readers;
  for (const Range* freed : put_off_) {
    for (const RecomputeRecord* reader : freed->readers) readers.push_back(reader->id);
  }
  for (const std::uint64_t id : readers) {
    const RecomputeRecord* const record = state_.recompute_records.Find(id);
    if (!record || (!even_held && ServesPlan(*record))) continue;
    const bool is_dropped = IsDropped(record->output);
    if (is_dropped && std::find(in_vain.begin(), in_vain.end(), record->output) == in_vain.end())
      return record->output;
    if (!is_dropped) Forget(record);
  }
  return nullptr;
}

// An output that is still leaving stays on the device.
void DeferredFrees::ForgetOne(const RecomputeRecord* record, FreesThatAreDue* due) {
  Range* const output = record->output;
  if (output->place == Place::kLeaving && output->drops)
    state_.residency.departures().Cancel(output);
  if (record->printed.stream) state_.residency.checks().GiveLater(record->print, record->printed);
  const auto inputs = record->inputs;
  state_.recompute_records.Forget(record);
  for (Tracked* input : inputs) {
    if (input->readers.empty() && input->free_is_due) due->push_back(input);
  }
}

// Under a plan memory is short. Events mark the last uses, so that no wait covers later work.
void DeferredFrees::MarkEnds(const UseList& busy) {
  if (!state_.walk.IsActive()) return;
  for (Use use : busy.items()) state_.timeline.EventFor(use);
}

// Whether the plan drops the output, and recomputes it later (scheduler/plan/held_inputs.h).
bool DeferredFrees::ServesPlan(const RecomputeRecord& record) {
  const Range* const output = record.output;
  const bool is_going = output->place == Place::kLeaving && output->drops;
  if (is_going || IsDropped(output)) return state_.walk.ExpectsUse(output->id);
  return record.state == RecomputeRecord::State::kLive && state_.walk.ExpectsDrop(output->id);
}

bool DeferredFrees::IsHeldForPlan(const Tracked* memory) {
  const auto records = state_.recompute_records.Of(memory);
  return std::any_of(records.begin(), records.end(),
                     [&](std::uint64_t id) SPILLWAY_REQUIRES(kStateLock) {
                       const RecomputeRecord* const record = state_.recompute_records.Find(id);
                       return record && record->output != memory && ServesPlan(*record);
                     });
}

}  // namespace spillway::interposer
