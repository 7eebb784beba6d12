#include "interposer/execute/recompute_recording.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/experiment.h"
#include "interposer/execute/launch_kind.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/visible_work.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

namespace {

using Verdict = RecomputeRecords::Verdict;

void AddOnce(Tracked* memory, RecomputeRecord* record) {
  if (std::find(record->inputs.begin(), record->inputs.end(), memory) == record->inputs.end())
    record->inputs.push_back(memory);
}

// Whether all that the launch names in the range, and all that the call claims there, is clobbered.
bool IsClobbered(const Range& range, const Claims& claims, const Addresses& addresses,
                 const RecordedLaunch& launch) {
  const CUdeviceptr end = range.base + range.size_bytes;
  const auto claims_all = claims.all();
  const bool is_claimed =
      std::all_of(claims_all.begin(), claims_all.end(), [&](const Claims::Claim& claim) {
        return claim.kind == Claims::Kind::kClobbers || claim.end <= range.base ||
               claim.begin >= end;
      });
  return is_claimed && std::all_of(addresses.begin(), addresses.end(), [&](CUdeviceptr address) {
           if (address < range.base || address >= end) return true;
           return claims.KindAt(address) == Claims::Kind::kClobbers &&
                  launch.LeadsInto(address, address + 1);
         });
}

}  // namespace

void RecomputeRecording::BeginRecord(const Addresses& addresses, TouchSet* set) {
  if (!set->stream || set->recorded || set->reaches || set->names_freed || set->stream->foreign)
    return;
  if (set->learned && !MayCheck()) return;
  const bool is_kept = state_.drops_eagerly || (set->step && set->step->keeps_record);
  const bool repeats = set->experiment && set->experiment->repeats;
  if (!is_kept && !state_.recorder.IsRecording()) return;
  const Shape shape = CallRecorder::Operation(*set, Effect::kLaunches).shape();
  const std::uint64_t token = scheduler::TokenOf(scheduler::JobEvent::Operation(shape, {}));
  {
    const StateLock lock(state_.locks);
    const Verdict verdict = state_.recompute_records.VerdictOn(token);
    if (verdict == Verdict::kRefuted || (verdict == Verdict::kProved && !(is_kept || repeats)))
      return;
    if (verdict != Verdict::kProved && set->learned && !repeats) return;
  }
  set->call->job = job_;
  auto record = RecordOf(addresses, *set, &set->call->lacks_scratch_bytes);
  if (!record) return;
  record->token = token;
  record->is_kept = is_kept;
  record->is_checked = set->learned.has_value();
  record->is_filled = set->learned && set->learned->is_of_others;
  record->reads_constants = set->learned && set->learned->reads_constants;
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  if (!MayBegin(*record, *set)) return;
  presumed_.Begin(*record);
  const RecomputeRecord* const kept = state_.recompute_records.Keep(std::move(record));
  // A call that passed the fast paths before they were closed may be made behind this launch.
  if (calls::OthersInProgress() || WaitingWorkMayUse(*kept, set->stream) ||
      !FillOutput(*kept, set->stream))
    return frees_.Forget(kept);
  set->call->record = kept->id;
  if (kept->is_checked && kept->is_kept) presumed_.EnterOwn(*kept, set);
}

void RecomputeRecording::NoteLaunched(const TouchSet& set) {
  const StateLock lock(state_.locks);
  RecomputeRecord* const record = state_.recompute_records.Find(set.call->record);
  if (!record) return;
  if (set.failed) return frees_.Forget(record);
  record->made_by = set.use;
  if (record->is_filled) ReadyAfter(record->output, set.use);
  record->state = RecomputeRecord::State::kMade;
}

// A wrong replay is found before a call shows its result. Host functions, and kernels on memory
// that the host sees, need no call. Textures and surfaces are used by handles, which look like any
// number.
bool RecomputeRecording::MayCheck() {
  return !VisibleWork::ProgramActsInStreams() && !VisibleWork::shows_everything() &&
         !VisibleWork::UsesTextures();
}

bool RecomputeRecording::MayDropAny() {
  return !CapturesGoOn() && !state_.residency.parking() && !state_.pointer_safety.MustWait() &&
         !state_.MustStay() && !driver::KnownContexts::HasSeveral();
}

bool RecomputeRecording::Drop(Range* range) {
  RecomputeRecord* const record = range->record;
  if (!record || record->state != RecomputeRecord::State::kLive || record->is_outdated ||
      !MayDropAny())
    return false;
  if (record->is_checked && !(MayCheck() && IsProved(*record))) return false;
  record->is_insured = record->is_checked && state_.recompute_records.MustInsure(record->token);
  if (!state_.residency.departures().StartDrop(range)) return false;
  if ((!record->is_checked || TakePrint(record)) && presumed_.Compare(record)) return true;
  state_.residency.departures().Cancel(range);
  return false;
}

bool RecomputeRecording::IsProved(const RecomputeRecord& record) const {
  return state_.recompute_records.VerdictOn(record.token) == Verdict::kProved;
}

// What replays are compared with: the content behind its last use.
bool RecomputeRecording::TakePrint(RecomputeRecord* record) {
  ContentChecks& checks = state_.residency.checks();
  if (!record->printed.stream) record->print = checks.TakeSlot();
  if (record->print == ContentChecks::kNoSlot) return false;
  const Use printed = checks.Take(*record->output, record->print);
  if (!printed.stream) return false;
  record->printed = printed;
  record->output->departure.Add(printed);
  return true;
}

void RecomputeRecording::DropOrEvict(const PlanStep::Allocations& allocations) {
  PlanStep::Allocations others;
  for (const std::uint64_t allocation : allocations) {
    Range* const range = state_.executor.Find(allocation);
    if (range && AwaitsItsCall(range)) continue;
    const bool is_dropped = range && !state_.residency.copies().IsGood(range) && Drop(range);
    state_.counters.planned_departures += is_dropped;
    if (!is_dropped) others.push_back(allocation);
  }
  state_.executor.StartEvictions(others);
}

void RecomputeRecording::DropIfDue(Range* range) {
  if (CapturesGoOn()) return;
  PlanStep::Allocations one;
  one.push_back(range->id);
  DropOrEvict(one);
}

// Null when the launch cannot be repeated.
std::unique_ptr<RecomputeRecord> RecomputeRecording::RecordOf(const Addresses& addresses,
                                                              const TouchSet& set,
                                                              size_t* lacks_scratch_bytes) {
  auto launch = RecordedLaunch::Of(*set.launch);
  if (!launch || !set.claims || !set.claims->AreApart()) return nullptr;
  auto record = std::make_unique<RecomputeRecord>();
  record->launch = std::move(*launch);
  const bool can = AddMemory(set, addresses, record.get()) &&
                   NamesAllClaimed(*set.claims, *record) &&
                   !LeadsElsewhere(record->launch, state_.ledger) &&
                   !(set.learned && state_.has_pageable_access &&
                     LeadsToPageable(record->launch, state_.ledger)) &&
                   scratch_.RedirectClobbered(*set.claims, record.get(), lacks_scratch_bytes);
  return can ? std::move(record) : nullptr;
}

// False unless the call is given only our memory, and its launch names only fitting roles.
bool RecomputeRecording::AddMemory(const TouchSet& set, const Addresses& addresses,
                                   RecomputeRecord* record) const {
  for (const Claims::Claim& claim : set.claims->all()) {
    if (!state_.ledger.Find(claim.begin)) return false;
  }
  const size_t named = set.at_once ? set.ranges.size() : set.named;
  for (size_t i = set.at_once ? 1 : 0; i < named; ++i) {
    Range* const range = set.ranges[i];
    const Role role = RoleAt(set, i);
    if (role == Role::kReads) {
      AddOnce(range, record);
    } else if ((role == Role::kOverwrites || !ordering_rules::kRecordsOverwriteAll) &&
               (!record->output || record->output == range)) {
      record->output = range;
    } else if (!IsClobbered(*range, *set.claims, addresses, record->launch)) {
      return false;
    }
  }
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.ledger.Find(address);
    if (!found) return false;
    if (!IsBlock(found)) continue;
    const Claims::Kind kind = set.claims->KindAt(address);
    const bool is_clobbered =
        kind == Claims::Kind::kClobbers && record->launch.LeadsInto(address, address + 1);
    if (kind == Claims::Kind::kReads) {
      AddOnce(static_cast<Tracked*>(found), record);
    } else if (!is_clobbered) {
      return false;
    }
  }
  return record->output != nullptr;
}

// Otherwise the call reaches memory that its launch does not name.
bool RecomputeRecording::NamesAllClaimed(const Claims& claims,
                                         const RecomputeRecord& record) const {
  const auto all = claims.all();
  return std::all_of(all.begin(), all.end(), [&](const Claims::Claim& claim) {
    if (claim.kind == Claims::Kind::kClobbers) return true;
    const Allocation* const found = state_.ledger.Find(claim.begin);
    return found == record.output ||
           std::find(record.inputs.begin(), record.inputs.end(), found) != record.inputs.end();
  });
}

bool RecomputeRecording::MayBegin(const RecomputeRecord& record, const TouchSet& set) {
  const int own_calls = set.at_once ? 0 : 1;
  if (record.is_kept ? !MayDropAny() : CapturesGoOn() || state_.MustStay()) return false;
  if (driver::KnownContexts::HasSeveral() || state_.calls.locked != own_calls ||
      state_.timeline.AnyStreamIsHeld())
    return false;
  if (record.is_filled && !record.output->is_fresh) return false;
  return !record.output->record && IsUsedByName(*record.output, own_calls) &&
         std::all_of(record.inputs.begin(), record.inputs.end(),
                     [&](const Tracked* input) { return IsUsedByName(*input, own_calls); });
}

// Work on other streams may wait for the program without our knowing, in a kernel that polls. Then
// it runs after the launch, although it was enqueued before.
bool RecomputeRecording::WaitingWorkMayUse(const RecomputeRecord& record,
                                           const StreamState* stream) {
  UseList others = state_.timeline.Unfinished();
  const StreamState* const replays = state_.replay_stream;
  others.items().EraseIf([=](Use use) { return use.stream == stream || use.stream == replays; });
  const auto may_be_used = [&](Tracked* input) SPILLWAY_REQUIRES(kStateLock) {
    return IsBlock(input) ? state_.slabs.MayBeUsedOn(AsBlock(input), others, stream)
                          : state_.residency.uses().MayBeUsedOn(AsRange(input), others);
  };
  bool may_any = state_.residency.uses().MayBeUsedOn(record.output, others);
  for (Tracked* input : record.inputs)
    may_any = may_be_used(input) || may_any;  // ask all: each notes its uses
  return may_any;
}

// Whether it can be recomputed is known only when the call that makes it has ended (CallEnded).
bool RecomputeRecording::AwaitsItsCall(Range* range) {
  RecomputeRecord* const record = range->record;
  if (!record || record->state != RecomputeRecord::State::kMade) return false;
  record->drop_is_due = true;
  return true;
}

}  // namespace spillway::interposer
