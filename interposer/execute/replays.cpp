#include "interposer/execute/replays.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range_trace.h"
#include "interposer/execute/state/touch_clock.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// A replay without memory fails at once, unless other calls may let go of memory. Each further
// replay would wait for those calls again.
constexpr std::uint64_t kWaitedNs = 1'000'000'000;

// Null when no input is dropped.
Range* DroppedInput(const RecomputeRecord& record) {
  for (Tracked* input : record.inputs) {
    if (!IsBlock(input) && IsDropped(AsRange(input))) return AsRange(input);
  }
  return nullptr;
}

// The first range to recompute for the sake of this one; null when it is not dropped. The chain
// ends, because no record reads what is made from its own output.
Range* FirstInChain(Range* range) {
  if (!IsDropped(range)) return nullptr;
  while (Range* const input = DroppedInput(*range->record)) range = input;
  return range;
}

}  // namespace

CUresult Replays::RecomputeRange(Range* wanted, StreamState* stream, TraceCause why) {
  for (;;) {
    Range* next;
    {
      const StateLock lock(state_.locks);
      next = FirstInChain(wanted);
    }
    if (!next) return CUDA_SUCCESS;
    const CUresult made = RecomputeOne(next, stream, why);
    if (made != CUDA_SUCCESS) return made;
  }
}

// Candidates are what the call names or reaches, and what is made from memory that it may write.
ToRecompute Replays::FirstToRecompute(const Addresses& addresses, Effect effect,
                                      const TouchSet& set) {
  if (state_.recompute_records.empty()) return {};
  ToRecompute first;
  if (set.writes_variables) first.range = EndUndropped(Which::kReadingConstants);
  const auto outdate = [&](Tracked* memory) SPILLWAY_REQUIRES(kStateLock) {
    if (const ToRecompute to_recompute = frees_.EndRecordsOf(memory); to_recompute.range)
      first = to_recompute;
  };
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    const bool may_write =
        MayWrite(set, i, effect) || (set.learned && !presumed_.MayPresume(set.ranges[i]));
    if (ordering_rules::kWritesAwaitReplays && may_write) outdate(set.ranges[i]);
    if (IsDropped(set.ranges[i])) first = {set.ranges[i], nullptr};
  }
  const bool claims_hold = set.claims && !set.recorded && !set.reaches;
  for (CUdeviceptr address : addresses) {
    Allocation* const found = effect == Effect::kReads ? nullptr : state_.FindUsable(address);
    if (!found || !IsBlock(found)) continue;
    const Role role = claims_hold
                          ? set.claims->RoleOf(*found, {addresses.begin(), addresses.size()})
                          : Role::kReadsAndWrites;
    const bool may_write = role != Role::kReads ||
                           (set.learned && !presumed_.MayPresume(static_cast<Tracked*>(found)));
    if (ordering_rules::kSmallWritesAwaitReplays && may_write)
      outdate(static_cast<Tracked*>(found));
  }
  for (Tracked* block : set.reached_blocks) outdate(block);
  return first;
}

// Frees go on waiting for ranges that cannot be recomputed.
void Replays::RunDeferredFrees(base::FunctionRef<bool()> even_held) {
  DeferredFrees::FutileRanges in_vain;
  while (frees_.put_off_bytes() != 0) {
    Range* dropped;
    {
      const StateLock lock(state_.locks);
      dropped = frees_.FirstThatFreesAwait(even_held(), in_vain);
    }
    if (!dropped) return;
    const base::ScopedCount call(&state_.calls.for_memory);
    const MakingLock making(state_.locks);
    const std::uint64_t begun_ns = base::MonotonicNs();
    if (RecomputeRange(dropped, nullptr, TraceCause::kDemand) == CUDA_SUCCESS) continue;
    if (base::MonotonicNs() - begun_ns > kWaitedNs) return;
    in_vain.push_back(dropped);
  }
}

// Nothing more is dropped by now: the caller's reason (a capture, say) is already visible.
bool Replays::EndRecords() {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  bool has_none;
  {
    const StateLock lock(state_.locks);
    has_none = state_.recompute_records.empty();
  }
  if (has_none) return AwaitReplays();  // of records that have ended
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  return EndRecordsWhileMaking();
}

// The replays made for that are complete, too: their kernels may be about to be unloaded.
bool Replays::EndRecordsWhileMaking() {
  for (Range* dropped = nullptr;; dropped = nullptr) {
    {
      const StateLock lock(state_.locks);
      dropped = EndUndropped(Which::kAll);
    }
    if (!dropped) break;
    if (RecomputeRange(dropped, nullptr, TraceCause::kDemand) == CUDA_SUCCESS) continue;
    const StateLock lock(state_.locks);
    return state_.residency.copies().Health() !=
           CUDA_SUCCESS;  // nothing can be recomputed any more, and the driver says why
  }
  return AwaitReplays();
}

Range* Replays::EndUndropped(Which which) {
  Range* dropped = nullptr;
  for (const std::uint64_t id : state_.recompute_records.All()) {
    const RecomputeRecord* const record = state_.recompute_records.Find(id);
    if (!record || (which == Which::kReadingConstants && !record->reads_constants)) continue;
    if (!IsDropped(record->output)) {
      frees_.Forget(record);
    } else {
      dropped = record->output;
    }
  }
  return dropped;
}

// On our own stream, and on the program's.
UseList Replays::ReplaysUnderWay() const {
  UseList uses = checks_.UnderWay();
  if (state_.replay_stream)
    uses.Add({state_.replay_stream, Timeline::IssuedOn(state_.replay_stream)});
  return uses;
}

void Replays::OrderBehindReplays(StreamState* stream) {
  const UseList uses = ReplaysUnderWay();
  for (const Use use : uses.items()) state_.timeline.OrderAfter(stream, use);
}

bool Replays::AwaitReplays() {
  UseList awaited;
  {
    const StateLock lock(state_.locks);
    awaited = ReplaysUnderWay();
  }
  return std::all_of(awaited.items().begin(), awaited.items().end(),
                     [this](Use use) { return waits_.AwaitQuietly(use); });
}

// Kernels may write what records read, and read what is dropped, without naming it.
void Replays::EndRecordsIfUnproven() {
  {
    const StateLock lock(state_.locks);
    if (state_.recompute_records.empty() || !state_.pointer_safety.MustWait()) return;
  }
  EndRecordsWhileMaking();
}

// `asked` is the stream of the plan's next operation. Our own stream serves where work on that
// would wait for the program or cannot be marked, and on demand. The call may stand behind an
// unknown wait for the program, while others need the result.
StreamState* Replays::StreamForReplay(StreamState* asked) {
  const bool serves = asked && !asked->foreign && !asked->is_ours &&
                      !driver::KnownContexts::HasSeveral() && !CapturesGoOn() &&
                      !state_.timeline.AnyStreamIsHeld();
  if (serves) return asked;
  if (!state_.replay_stream) {
    CUstream stream = nullptr;
    Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    state_.replay_stream = state_.timeline.Of({stream, false});
    state_.replay_stream->is_for_replays = true;
  }
  return state_.replay_stream;
}

CUresult Replays::RepeatLaunch(RecomputeRecord* record, StreamState* stream, TraceCause why) {
  if (ordering_rules::kReplaysFollowInputs) {
    for (Tracked* input : record->inputs) state_.residency.OrderBehind(input, stream);
  }
  if (record->is_checked) {
    for (Tracked* input : record->inputs) OrderBehindReaders(input, stream);
  }
  state_.residency.OrderBehind(record->output, stream);
  state_.timeline.OrderAfter(stream, record->made_by);
  if (record->clobbers && scratch_.last_use().stream)
    state_.timeline.OrderAfter(stream, scratch_.last_use());
  const TraceMoment begun = state_.trace.Begin(stream->handle);
  const bool is_checked = record->is_checked && record->state == RecomputeRecord::State::kLive;
  const CUresult result =
      is_checked ? LaunchChecked(record, stream) : record->launch.LaunchOn(stream->handle);
  if (result != CUDA_SUCCESS) {
    state_.trace.Cancel(begun);
    return result;
  }
  TraceEvent event = TraceOf(TraceKind::kRecompute, record->output, why);
  event.stream = stream->number;
  state_.trace.End(stream->handle, begun, event);
  const Use use = state_.timeline.Issue(stream);
  state_.timeline.EventFor(use);
  if (is_checked) checks_.Ended(record, use);
  if (record->clobbers) scratch_.Used(use);
  if (ordering_rules::kWritesFollowReplays) {
    for (Tracked* input : record->inputs) NoteReplay(input, use);
  }
  if (ordering_rules::kUsesFollowReplays) NoteReplay(record->output, use);
  if (record->is_insured && !RestoreInsured(record, use, why))
    checks_.NoteWrong(record->launch.function());
  return CUDA_SUCCESS;
}

// If the launch writes the input after all, that is known before anything that read it is shown.
void Replays::OrderBehindReaders(Tracked* input, StreamState* stream) {
  UseList* const uses = IsBlock(input) ? &AsBlock(input)->uses : &AsRange(input)->uses;
  IsBlock(input) ? state_.slabs.MayBeUsedOn(AsBlock(input), {}, stream)
                 : state_.residency.uses().MayBeUsedOn(AsRange(input), {});  // each notes its uses
  for (const Use use : uses->items()) {
    if (use.stream != stream) state_.timeline.OrderAfter(stream, use);
  }
}

// The host copy is what the program made. It replaces what the replay made, which is compared
// later.
bool Replays::RestoreInsured(RecomputeRecord* record, Use made, TraceCause why) {
  record->is_insured = false;
  return made.stream ? state_.residency.copies().InBehind(record->output, made, why)
                     : state_.residency.copies().In(record->output, why);
}

CUresult Replays::LaunchChecked(RecomputeRecord* record, StreamState* stream) {
  const bool can_check = checks_.Begin(*record, stream);
  const bool can_launch = can_check && FillOutput(*record, stream);
  const CUresult result =
      can_launch ? record->launch.LaunchOn(stream->handle) : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS)
    checks_.End(*record, stream);
  else
    checks_.NotMade(stream);
  return result;
}

void Replays::NoteReplay(Tracked* memory, Use use) {
  ReadyAfter(memory, use);
  memory->last_touch = TouchClock();
  if (!IsBlock(memory)) AsRange(memory)->uses.Add(use);
}

// Does nothing when another thread has changed what there is to do.
CUresult Replays::RecomputeOne(Range* range, StreamState* stream, TraceCause why) {
  Inputs inputs;
  {
    const StateLock lock(state_.locks);
    if (!IsDropped(range) || DroppedInput(*range->record)) return CUDA_SUCCESS;
    for (Tracked* input : range->record->inputs) {
      if (!IsBlock(input)) inputs.push_back(AsRange(input));
    }
    for (Range* input : inputs) state_.residency.Pin(input);
    state_.residency.Pin(range);
  }
  bool all_there = PrepareInputs(inputs);
  for (Range* input : inputs) all_there = all_there && restores_.MakeResident(input, Role::kReads);
  CUresult result = CUDA_SUCCESS;
  all_there =
      all_there && eviction_.MakeRoom(
                       range->size_bytes, StallCause::kDemand, [&]() SPILLWAY_REQUIRES(kStateLock) {
                         if (!IsDropped(range)) return true;  // it was freed
                         if (!state_.residency.GiveDroppedMemory(range)) return false;
                         result = RepeatLaunch(range->record, StreamForReplay(stream), why);
                         if (result != CUDA_SUCCESS && range->record->is_insured &&
                             RestoreInsured(range->record, {}, why))
                           result = CUDA_SUCCESS;
                         if (result != CUDA_SUCCESS) state_.residency.DropAgain(range);
                         return true;
                       });
  const bool is_kept = !all_there && RestoreFromInsurance(range);
  if (!all_there && !is_kept) result = RecomputeParked(range, inputs);
  {
    const StateLock lock(state_.locks);
    for (Range* input : inputs) state_.residency.Unpin(input);
    state_.residency.Unpin(range);
    const bool is_made = result == CUDA_SUCCESS && !is_kept;
    state_.counters.recomputes += is_made;
    state_.counters.recomputed_bytes += is_made ? range->requested_bytes : 0;
    state_.counters.demand_recomputes += is_made && why != TraceCause::kPlan;
  }
  parking_.EndMoving();
  return result;
}

// Kernels may use parked memory without naming it, so its mapping changes only while the device is
// idle. False when it may not change.
bool Replays::PrepareInputs(const Inputs& inputs) {
  bool must_prepare;
  {
    const StateLock lock(state_.locks);
    must_prepare =
        state_.pointer_safety.MustPark() && parking_.MustPrepare() && !AllOnDevice(inputs);
  }
  return !must_prepare || parking_.PrepareToMove();
}

// Without memory for a replay: the range's host copy serves.
bool Replays::RestoreFromInsurance(Range* range) {
  const StateLock lock(state_.locks);
  if (!IsDropped(range) || !std::exchange(range->record->is_insured, false)) return false;
  range->place = Place::kHost;
  Range* const one[] = {range};
  if (state_.residency.parking()) restores_.ParkEvicted(one);
  return true;
}

// The budget has become too small for output and inputs together. They are used parked, as by a
// call that names too much. The replay is complete when the lock is released: reads of parked
// memory wait for the program's streams only.
CUresult Replays::RecomputeParked(Range* range, const Inputs& inputs) {
  const StateLock lock(state_.locks);
  if (!IsDropped(range)) return CUDA_SUCCESS;
  if (!restores_.ParkEvicted({inputs.begin(), inputs.size()}) ||
      !state_.residency.ParkDropped(range))
    return state_.OutOfMemory();
  StreamState* const stream = StreamForReplay(nullptr);
  const CUresult result = RepeatLaunch(range->record, stream, TraceCause::kDemand);
  if (result != CUDA_SUCCESS) {
    state_.residency.DropAgain(range);
    return result;
  }
  return Driver().cuStreamSynchronize(stream->handle);
}

}  // namespace spillway::interposer
