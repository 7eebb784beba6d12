#include "interposer/execute/effect_learning.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/function_name.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/unrepeated_kernels.h"
#include "interposer/ledger/libraries.h"
#include "interposer/record/trace_names.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;
using Piece = Experiment::Piece;
using Moment = Experiment::Moment;

namespace {

// The memory for fingerprints is worth it from such a budget on.
constexpr std::size_t kLeastBudgetBytes = 16 * kGranuleBytes;
constexpr std::size_t kMostUnderWay = 64;   // experiments
constexpr std::size_t kMostVariables = 64;  // of all modules; beyond that nothing is repeated
constexpr std::size_t kMostVariableBytes = size_t{1} << 20;
constexpr unsigned kTriesForUnchanged = 3;
// What fills memory before a repetition, by turns: as floating-point numbers very large ones of
// either sign, or none; as integers likewise. Not zeros, which records are filled with.
constexpr unsigned char kPatterns[] = {0x7f, 0xfe};

bool IsDocumented(const TouchSet& set) {
  return set.claims && !set.claims->empty() && !set.learned;
}

}  // namespace

// Without it nothing is learned. It counts like memory for small allocations.
void EffectLearning::Prepare(const TouchSet& set) {
  if (!set.launch || IsDocumented(set)) return;
  if (state_.budget.bytes() < kLeastBudgetBytes || CapturesGoOn()) return;
  if (!stored_.KnowsAllVariables()) {
    const CurrentContext current(state_.context);
    const MakingLock making(state_.locks);
    stored_.FindVariables();
  }
  {
    const StateLock lock(state_.locks);
    // Loading the kernel may wait for the device.
    if (!state_.residency.checks().IsUntried() || state_.timeline.AnyStreamIsHeld()) return;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    if (!state_.residency.checks().IsUntried()) return;  // another thread was first
  }
  Chunks chunks;
  const bool made =
      eviction_.MakeRoom(kGranuleBytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
        return state_.residency.TakeChunks(kGranuleBytes, &chunks);
      });
  parking_.EndMoving();
  const StateLock lock(state_.locks);
  const CUdeviceptr base = made ? state_.residency.mappings().MapAnew(kGranuleBytes, chunks) : 0;
  if (!base) state_.residency.chunks().Give(&chunks);
  if (!state_.residency.checks().Prepare(base, std::move(chunks)) && !base) return;
  state_.counters.UnmovableFor(Unmovable::kSmall).Add(kGranuleBytes);
  state_.budget.Want(kGranuleBytes);
}

void EffectLearning::Expect(const Addresses& addresses, StreamName stream, TouchSet* set) {
  if (state_.effects.empty() || !set->launch || set->learned || IsDocumented(*set)) return;
  const std::optional<NamedMemory> memory = MemoryNamedBy(addresses, state_.ledger);
  if (!memory) return;
  const StateLock lock(state_.locks);
  const LaunchKind kind =
      KindOf(set->shape, *set->launch, state_.timeline.Of(stream)->number, *memory, state_.ledger);
  const Effect* const effect = state_.effects.Expected(kind, memory->size());
  if (!effect) return;
  LearnedLaunch& learned = set->learned.emplace();
  learned.is_proved = effect->stage == LaunchEffects::Stage::kProved;
  learned.is_of_others = effect != state_.effects.Find(kind);
  learned.reads_constants = effect->reads_constants;
  learned.call.claims = &learned.claims;
  learned.call.works = 1;
  AddClaims(*memory, effect->roles, &learned.claims);
  set->claims = &learned.claims;
}

// The largest range that the launch fills is what a record makes again.
void EffectLearning::AddClaims(const NamedMemory& memory, const LearnedRoles& roles,
                               Claims* claims) {
  const Tracked* output = nullptr;
  for (size_t i = 0; i < memory.size(); ++i) {
    const bool is_larger = !output || memory[i]->requested_bytes > output->requested_bytes;
    if (roles[i].role == Role::kOverwrites && roles[i].is_range && is_larger) output = memory[i];
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    const Tracked& each = *memory[i];
    switch (roles[i].role) {
      case Role::kReads:
        claims->Reads(each.base, each.requested_bytes);
        break;
      case Role::kOverwrites:
        &each == output ? claims->Overwrites(each.base, each.requested_bytes)
                        : claims->Clobbers(each.base, each.requested_bytes);
        break;
      case Role::kReadsAndWrites:
      case Role::kScratch:  // experiments find none
      case Role::kMoreScratch:
        claims->Touches(each.base);
        break;
    }
  }
}

bool EffectLearning::ReadVariables() {
  const StateLock lock(state_.locks);
  return !under_way_.empty();
}

void EffectLearning::ForgetKinds() {
  const StateLock lock(state_.locks);
  state_.effects.Forget();
}

scheduler::TouchRoles EffectLearning::RolesOf(std::uint64_t token) {
  const StateLock lock(state_.locks);
  scheduler::TouchRoles roles;
  for (const LearnedRole& each : state_.effects.RangeRolesOf(token))
    roles.push_back({.writes = each.role != Role::kReads, .reads = each.role != Role::kOverwrites});
  return roles;
}

void EffectLearning::Begin(const Addresses& addresses, TouchSet* set) {
  if (!set->launch || IsDocumented(*set) || set->awaits_scan) return;
  const std::optional<NamedMemory> memory = MemoryNamedBy(addresses, state_.ledger);
  if (!memory || memory->empty()) return;
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  Collect();
  if (!IsQuiet(*set)) return;
  auto experiment = std::make_unique<Experiment>();
  experiment->kind = KindOf(set->shape, *set->launch, set->stream->number, *memory, state_.ledger);
  Effect* const effect = state_.effects.ForExperiment(experiment->kind);
  if (!effect) return;
  experiment->function = set->launch->function;
  experiment->stream = set->stream;
  experiment->issued_by_others = IssuedByOthers(set->stream);
  const bool has_all = AddPieces(*memory, experiment.get());
  experiment->repeats = effect->stage == LaunchEffects::Stage::kObserved;
  if (experiment->repeats && !(has_all && MayRepeat(effect, *experiment, *set))) return;
  const bool is_begun = TakePrints(experiment.get(), Experiment::kBefore, set->stream);
  effect->is_under_way = true;
  experiment->is_under_way = is_begun;
  if (!is_begun) experiment->end = state_.timeline.Issue(set->stream);
  if (is_begun) set->experiment = experiment.get();
  ++state_.counters.experiments;
  under_way_.push_back(std::move(experiment));
}

void EffectLearning::AfterLaunch(TouchSet* set) {
  const StateLock lock(state_.locks);
  set->experiment->is_made =
      !set->failed && TakePrints(set->experiment, Experiment::kAfter, set->stream);
}

void EffectLearning::End(TouchSet* set) {
  const StateLock lock(state_.locks);
  set->experiment->launched = set->experiment->end = set->use;
  state_.timeline.EventFor(set->use);
  if (set->experiment->repeats) return;  // until EndRepetition
  set->experiment->is_under_way = false;
  set->experiment = nullptr;  // any thread may collect it from now on
}

bool EffectLearning::ChangedOnlyOutputs(const Experiment& experiment) {
  return experiment.is_made && InputsAre(experiment, Experiment::kBefore, Experiment::kAfter);
}

bool EffectLearning::FillForRepetition(const Range& output, const StreamState* stream) {
  static std::atomic<unsigned> filled{0};
  const unsigned char pattern = kPatterns[filled.fetch_add(1) % std::size(kPatterns)];
  return Driver().cuMemsetD8Async(output.base, pattern, output.requested_bytes, stream->handle) ==
         CUDA_SUCCESS;
}

void EffectLearning::AfterRepetition(Experiment* experiment, StreamState* stream) {
  experiment->is_made = TakePrints(experiment, Experiment::kAgain, stream);
  experiment->end = state_.timeline.Issue(stream);
  state_.timeline.EventFor(experiment->end);
}

void EffectLearning::EndRepetition(Experiment* experiment, Experiment::Repetition outcome) {
  experiment->repetition = outcome;
  experiment->is_under_way = false;
  experiment->was_alone = experiment->issued_by_others == IssuedByOthers(experiment->stream) &&
                          Timeline::IssuedOn(experiment->stream) == experiment->launched.sequence;
  if (outcome != Experiment::Repetition::kNone && experiment->is_made && experiment->was_alone &&
      !InputsAre(*experiment, Experiment::kAfter, Experiment::kAgain))
    checks_.NoteWrong(experiment->function);
  Collect();
}

bool EffectLearning::IsQuiet(const TouchSet& set) {
  return state_.residency.checks().IsReady() && under_way_.size() < kMostUnderWay && set.stream &&
         !set.recorded && !set.reaches && !set.names_freed && !set.stream->foreign &&
         !CapturesGoOn() && !state_.MustStay() && !driver::KnownContexts::HasSeveral() &&
         !state_.timeline.AnyStreamIsHeld() && (set.at_once || AllOnDevice(set.ranges));
}

// False when the device variables are too many to watch.
bool EffectLearning::AddPieces(const NamedMemory& memory, Experiment* experiment) {
  for (Tracked* each : memory)
    experiment->pieces.push_back({each, each->base, each->requested_bytes, each->is_fresh});
  experiment->named = memory.size();
  std::size_t bytes = 0;
  const auto& globals = stored_.globals();
  for (const StoredAddresses::Global& global : globals) bytes += global.bytes;
  if (globals.size() > kMostVariables || bytes > kMostVariableBytes) return false;
  for (const StoredAddresses::Global& global : globals)
    experiment->pieces.push_back({nullptr, global.base, global.bytes});
  return true;
}

bool EffectLearning::MayRepeat(Effect* effect, const Experiment& experiment, const TouchSet& set) {
  if (!stored_.KnowsAllVariables() || !RecomputeRecording::MayCheck()) return false;
  if (state_.pointer_safety.MustWait() || effect->roles.size() != experiment.named) return false;
  const int pins = set.at_once ? 0 : 1;
  if (calls::OthersInProgress() || state_.calls.locked != pins) return false;
  for (size_t i = 0; i < experiment.named; ++i) {
    const Piece& piece = experiment.pieces[i];
    if (effect->roles[i].role == Role::kOverwrites && !piece.is_fresh) return false;
    if (!IsUsedByName(*piece.memory, pins)) return false;
  }
  const auto launch = RecordedLaunch::Of(*set.launch);
  if (!launch || LeadsElsewhere(*launch, state_.ledger)) return false;
  const DependsOn what = Libraries::Instance().WhatMatters(set.launch->function);
  effect->reads_constants = what == DependsOn::kConstants;
  if (what == DependsOn::kAnything && !std::exchange(effect->is_noted, true))
    NoteUnrepeated(set.launch->function, UnrepeatedBecause::kHasStateElsewhere);
  return what != DependsOn::kAnything;
}

bool EffectLearning::TakePrints(Experiment* experiment, Moment moment, const StreamState* stream) {
  ContentChecks& checks = state_.residency.checks();
  std::vector<Fingerprints::Piece> pieces;
  for (Piece& piece : experiment->pieces) {
    if (moment == Experiment::kAgain && piece.is_fresh) continue;  // nothing keeps it in place
    piece.slots[moment] = checks.TakeSlot();
    if (piece.slots[moment] == ContentChecks::kNoSlot) return false;
    pieces.push_back({piece.begin, piece.bytes, piece.slots[moment]});
  }
  return checks.Take(stream->handle, pieces);
}

void EffectLearning::Collect() {
  while (!under_way_.empty()) {
    const Experiment& first = *under_way_.front();
    if (first.is_under_way || !state_.timeline.Done(first.end)) return;
    Evaluate(first);
    under_way_.pop_front();
  }
}

void EffectLearning::Evaluate(const Experiment& experiment) {
  Effect* const effect = state_.effects.Find(experiment.kind);
  if (!effect) return GiveSlots(experiment, experiment.end);  // forgotten meanwhile
  effect->is_under_way = false;
  if (!experiment.is_made) {
    ++effect->tries;
  } else {
    experiment.repeats ? NoteRepeated(experiment, effect) : NoteObserved(experiment, effect);
    state_.effects.Learned(experiment.kind);
    JudgeToken(experiment.kind.token);
  }
  GiveSlots(experiment, experiment.end);
}

// A replay that made other bytes has the last word, also on functions that are loaded anew.
void EffectLearning::JudgeToken(std::uint64_t token) {
  using Verdict = RecomputeRecords::Verdict;
  if (state_.recompute_records.VerdictOn(token) == Verdict::kRefuted) return;
  state_.recompute_records.Judge(
      token, state_.effects.IsProved(token) ? Verdict::kProved : Verdict::kUnknown);
}

// Memory without content that looks unchanged may have got the bytes that it held by chance.
void EffectLearning::NoteObserved(const Experiment& experiment, Effect* effect) {
  LearnedRoles roles;
  bool fills_range = false, may_repeat = true;
  const bool others_ran = experiment.issued_by_others != IssuedByOthers(experiment.stream);
  for (size_t i = 0; i < experiment.pieces.size(); ++i) {
    const Piece& piece = experiment.pieces[i];
    const bool is_changed = !IsSame(piece, Experiment::kBefore, Experiment::kAfter);
    if (i >= experiment.named) {
      may_repeat = may_repeat && !is_changed;
      continue;
    }
    const bool is_range = !IsBlock(piece.memory);
    if (piece.is_fresh && !is_changed && ++effect->tries < kTriesForUnchanged) return;
    if (!piece.is_fresh && is_changed && others_ran && ++effect->tries < kTriesForUnchanged) return;
    const Role role = !is_changed      ? Role::kReads
                      : piece.is_fresh ? Role::kOverwrites
                                       : Role::kReadsAndWrites;
    fills_range = fills_range || (is_range && role == Role::kOverwrites);
    may_repeat = may_repeat && role != Role::kReadsAndWrites;
    roles.push_back({role, is_range});
  }
  TraceResult(experiment, ExperimentResult::kObserved);
  effect->roles = roles;
  effect->tries = 0;
  effect->stage = LaunchEffects::Stage::kObserved;
  effect->is_final = !fills_range || !may_repeat;
  if (fills_range && !may_repeat)
    NoteUnrepeated(experiment.function, UnrepeatedBecause::kUpdatesItsInput);
}

void EffectLearning::NoteRepeated(const Experiment& experiment, Effect* effect) {
  const bool is_known = experiment.repetition != Experiment::Repetition::kNone;
  const bool is_same = experiment.repetition == Experiment::Repetition::kSame &&
                       InputsAre(experiment, Experiment::kBefore, Experiment::kAgain);
  for (size_t i = 0; i < experiment.named; ++i) {
    const bool is_changed = !IsSame(experiment.pieces[i], Experiment::kBefore, Experiment::kAfter);
    if (is_changed && effect->roles[i].role == Role::kReads)
      effect->roles[i].role = Role::kReadsAndWrites;
  }
  if (!is_known || (!is_same && !experiment.was_alone)) {
    ++effect->tries;
    return;
  }
  TraceResult(experiment, is_same ? ExperimentResult::kProved : ExperimentResult::kRefuted);
  effect->is_final = true;
  if (is_same)
    effect->stage = LaunchEffects::Stage::kProved;
  else
    NoteUnrepeated(experiment.function, UnrepeatedBecause::kMadeOtherBytes);
  ++(is_same ? state_.counters.proved_operations : state_.counters.refuted_operations);
}

void EffectLearning::TraceResult(const Experiment& experiment, ExperimentResult result) {
  if (!JobTrace::IsOn()) return;
  const char* const kernel = driver::NameOf(experiment.function);
  state_.trace.Now({.kind = TraceKind::kExperiment,
                    .name = kernel ? KeepTraceName(ShapeOfName(kernel), kernel) : nullptr,
                    .values = {static_cast<std::int64_t>(result)}});
}

bool EffectLearning::InputsAre(const Experiment& experiment, Moment one, Moment other) {
  for (size_t i = 0; i < experiment.pieces.size(); ++i) {
    const bool is_output = i < experiment.named && experiment.pieces[i].is_fresh;
    if (!is_output && !IsSame(experiment.pieces[i], one, other)) return false;
  }
  return true;
}

bool EffectLearning::IsSame(const Piece& piece, Moment one, Moment other) {
  const ContentChecks& checks = state_.residency.checks();
  return checks.Read(piece.slots[one]) == checks.Read(piece.slots[other]);
}

void EffectLearning::GiveSlots(const Experiment& experiment, Use use) {
  for (const Piece& piece : experiment.pieces) {
    for (const Fingerprints::Slot slot : piece.slots)
      state_.residency.checks().GiveLater(slot, use);
  }
}

// On other streams of the program.
std::uint64_t EffectLearning::IssuedByOthers(const StreamState* stream) {
  std::uint64_t issued = 0;
  for (const Use use : state_.timeline.IssuedIn(state_.context)) {
    const bool is_ours = use.stream->is_ours || use.stream->is_for_replays;
    if (use.stream != stream && !is_ours) issued += use.sequence;
  }
  return issued;
}

}  // namespace spillway::interposer
