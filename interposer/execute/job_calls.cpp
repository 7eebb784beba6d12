#include "interposer/execute/job_calls.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

using driver::RelaxedCapture;

namespace {

bool IsUndocumented(const TouchSet& set, Effect effect) {
  return effect == Effect::kLaunches && !set.is_documented && !set.recorded;
}

bool IsToRepeat(const TouchSet& set) { return set.experiment && set.experiment->repeats; }

void CountEnded(const TouchSet& set, Effect effect) {
  if (IsUndocumented(set, effect)) {
    Timeline::UndocumentedEnded(set.use, set.turn.IsMine());
  } else if (effect == Effect::kLaunches) {
    Timeline::DocumentedEnded(set.stream, set.turn.IsMine());
  } else {
    Timeline::CopyEnded(set.stream, set.turn.IsMine());
  }
}

}  // namespace

CUresult JobCalls::Begin(Addresses* addresses, StreamName stream, Effect effect, TouchSet* set) {
  if (addresses->empty() && IsForeign(stream)) return CUDA_SUCCESS;
  if (grants_.has_schedule() && effect == Effect::kLaunches) grants_.FollowSchedule();
  const bool learns = effect == Effect::kLaunches && state_.Learns();
  if (learns) learning_.Prepare(*set);
  if (const CUresult begun = BeginFastOrLocked(addresses, stream, effect, set);
      begun != CUDA_SUCCESS)
    return begun;
  if (state_.walk.IsActive() && set->stream && !set->recorded)
    plan_.FollowPlan(stream, effect, set);
  if (set->step && !set->step->recompute.empty()) {
    const CUresult made = RecomputeBeforeOperation(addresses, stream, effect, set);
    if (made != CUDA_SUCCESS) return made;
  }
  if (set->step && !set->step->prefetch_behind.empty())
    plan_.AskFor(set->step->prefetch_behind, effect);
  if (learns) learning_.Begin(*addresses, set);
  if (effect == Effect::kLaunches && IsToKeepRecord(*set)) ExpectRecord(*addresses, stream, set);
  if (set->call) records_.BeginRecord(*addresses, set);
  if (state_.recorder.IsSampling()) recording_.BeginSample(effect, set);
  if (JobTrace::IsOn()) recording_.BeginTraced(set);
  set->turn.TryToTake(&set->stream->turn_is_taken);
  if (IsUndocumented(*set, effect)) Timeline::UndocumentedBegins(set->stream, set->turn.IsMine());
  return CUDA_SUCCESS;
}

void JobCalls::End(TouchSet* set, Effect effect) {
  if (!set->stream) return;
  const RelaxedCapture relaxed(!set->at_once);
  if (set->sample.number) state_.recorder.AfterLaunch(set->stream->handle, set->sample);
  if (set->traced.host_ns) recording_.EndTraced(*set, effect);
  if (set->recorded) return locked_calls_.EndLocked(set, effect);
  if (set->experiment) learning_.AfterLaunch(set);
  set->use = state_.timeline.Issue(set->stream);
  if (set->experiment) learning_.End(set);
  if (set->shows) state_.timeline.Show(set->use);
  CountEnded(*set, effect);
  if (state_.recorder.IsRecording()) recording_.Record(*set, effect);
  if (set->call && records_.Began(*set->call)) records_.NoteLaunched(*set);
  set->at_once ? LaunchPath::EndAtOnce(*set) : locked_calls_.EndLocked(set, effect);
  LeavePresumed(set);
  set->turn.GiveBack();
  EndLearned(set);
  if (set->step) plan_.EndPlanned(*set->step);
  plan_.RestorePending();
  state_.recorder.Settle();
}

// Before the call begins, the decision whether to scan this launch may get outdated: scans start,
// or a full scan proves the job. Then the call begins anew, now awaiting a scan. Once a call has
// begun no full scan runs. Reads of host memory are decided likewise.
CUresult JobCalls::BeginFastOrLocked(Addresses* addresses, StreamName stream, Effect effect,
                                     TouchSet* set) {
  for (;;) {
    set->awaits_scan = set->is_new && post_scan_.BeginNew();
    set->reads_host = effect == Effect::kLaunches && parking_.reads_host();
    if (set->reads_host) stored_.ReadHost(set);
    if (set->writes_variables || !launch_path_.BeginAtOnce(*addresses, stream, effect, set)) {
      if (effect == Effect::kLaunches) learning_.Expect(*addresses, stream, set);
      if (effect == Effect::kLaunches) AddBeside(addresses);
      const CUresult begun = locked_calls_.BeginLocked(*addresses, stream, effect, set);
      if (begun != CUDA_SUCCESS) {
        if (set->awaits_scan) post_scan_.EndNew(*addresses, *set, false);
        return begun;
      }
    }
    if (!MustWithdraw(effect, *set)) return CUDA_SUCCESS;
    Withdraw(set);
  }
}

bool JobCalls::IsToKeepRecord(const TouchSet& set) const {
  const bool is_kept = state_.drops_eagerly || (set.step && set.step->keeps_record);
  return !set.call && (IsToRepeat(set) || is_kept);
}

// A launch whose kind experiments have proved may have a record, like a library's call.
void JobCalls::ExpectRecord(const Addresses& addresses, StreamName stream, TouchSet* set) {
  learning_.Expect(addresses, stream, set);
  if (!set->learned || !(set->learned->is_proved || IsToRepeat(*set))) return;
  AssignRoles(addresses, set);
  set->call = &set->learned->call;
}

// The experiment that is left, if any, is to be repeated.
void JobCalls::EndLearned(TouchSet* set) {
  if (set->learned && set->learned->call.job)
    proofs_.CallEnded(set->learned->call, set->experiment);
  else if (set->experiment)
    proofs_.EndUnmade(set->experiment);
}

void JobCalls::LeavePresumed(TouchSet* set) {
  if (set->presumed.empty()) return;
  const StateLock lock(state_.locks);
  presumed_.Leave(set);
}

// A launch's stray addresses count as well. (Note [Beside an allocation] in ledger/ledger.h)
void JobCalls::AddBeside(Addresses* addresses) const {
  if (!ordering_rules::kBesideIsNamed) return;
  const size_t named = addresses->size();
  for (size_t i = 0; i < named; ++i) {
    for (const CUdeviceptr beside : state_.ledger.Beside((*addresses)[i])) {
      if (std::find(addresses->begin(), addresses->end(), beside) == addresses->end())
        addresses->push_back(beside);
    }
  }
}

bool JobCalls::MustWithdraw(Effect effect, const TouchSet& set) const {
  const bool lacks_scan = set.is_new && !set.awaits_scan && parking_.scans();
  return lacks_scan || (effect == Effect::kLaunches && !set.reads_host && parking_.reads_host());
}

void JobCalls::Withdraw(TouchSet* set) {
  LeavePresumed(set);
  set->at_once ? calls::Leave(set->ranges.size()) : locked_calls_.WithdrawLocked(set);
  set->ranges.clear();
  set->at_once = false;
}

// The call lets go of its memory: threads that make memory wait for calls, never vice versa.
CUresult JobCalls::RecomputeBeforeOperation(Addresses* addresses, StreamName stream, Effect effect,
                                            TouchSet* set) {
  const PlanStep& step = *set->step;
  if (set->awaits_scan || !plan_.AnyToRerun(step)) return CUDA_SUCCESS;
  Withdraw(set);
  plan_.Rerun(step, stream);
  return BeginFastOrLocked(addresses, stream, effect, set);
}

// Work on another device's stream concerns this job only if it names the job's memory.
bool JobCalls::IsForeign(StreamName stream) {
  if (!driver::KnownContexts::HasSeveral()) return false;
  StreamState* state = state_.timeline.Known(stream);
  if (!state) {
    const StateLock lock(state_.locks);
    state = state_.timeline.Of(stream);
  }
  return state->foreign;
}

}  // namespace spillway::interposer
