// What is dropped because it can be made again, and making it again. (Note [Recipes] in recipe.h)
//
// Who needs the bytes makes them: the plan before an operation, a call that names them or may write what they are made from, a
// free of that, and whatever may use memory without our noticing. No call in progress of the same thread holds memory meanwhile.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/touch_clock.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

// What cannot be made is known at once, but where others' calls may let go of memory: they would be waited for with each anew.
constexpr std::uint64_t kWaitedNs = 1'000'000'000;

bool IsDropped(const Range* range) { return range->place == Place::kDropped; }

// Null when all that the recipe reads is somewhere.
Range* DroppedInput(const Recipe& recipe) {
  for (Tracked* input : recipe.inputs) {
    if (!IsBlock(input) && IsDropped(AsRange(input))) return AsRange(input);
  }
  return nullptr;
}

// The first to be made for the sake of the range; null when it is not dropped. No recipe reads what is made from its own output,
// so that there is an end.
Range* FirstInChain(Range* range) {
  if (!IsDropped(range)) return nullptr;
  while (Range* const input = DroppedInput(*range->recipe)) range = input;
  return range;
}

}  // namespace

// While this holds memory is used by calls that name it alone, and moves while kernels run.
bool JobMemory::MayDropAny() {
  return !CapturesGoOn() && !state_.residency.parking() && !state_.trust.MustWait() && !state_.MustStay() &&
         !driver::ContextCensus::HasSeveral();
}

bool JobMemory::Drop(Range* range) {
  const Recipe* const recipe = range->recipe;
  return recipe && recipe->state == Recipe::State::kLive && MayDropAny() &&
         state_.residency.StartToDrop(range);
}

// Whether it can be made again is known when the call that makes it has ended (CallEnded).
bool JobMemory::AwaitsItsCall(Range* range) {
  Recipe* const recipe = range->recipe;
  if (!recipe || recipe->state != Recipe::State::kMade) return false;
  recipe->drop_is_due = true;
  return true;
}

void JobMemory::DropOrSendAway(const PlanStep::Allocations& allocations) {
  PlanStep::Allocations others;
  for (const std::uint64_t allocation : allocations) {
    Range* const range = state_.executor.Find(allocation);
    if (range && AwaitsItsCall(range)) continue;
    const bool is_dropped = range && !state_.residency.HasGoodHostCopy(range) && Drop(range);
    state_.counters.planned_departures += is_dropped;
    if (!is_dropped) others.push_back(allocation);
  }
  state_.executor.SendAway(others);
}

// The call that made it has ended.
void JobMemory::DropWhatIsDue(Range* range) {
  if (CapturesGoOn()) return;
  PlanStep::Allocations one;
  one.push_back(range->id);
  DropOrSendAway(one);
}

// What is on its way out stays.
void JobMemory::ForgetOne(const Recipe* recipe, FreesThatAreDue* due) {
  Range* const output = recipe->output;
  if (output->place == Place::kLeaving && output->drops) state_.residency.Stay(output);
  const auto inputs = recipe->inputs;
  state_.recipes.Forget(recipe);
  for (Tracked* input : inputs) {
    if (input->readers.empty() && input->free_is_due) due->push_back(input);
  }
}

// Frees that have waited for the recipe happen, and those that have waited for these: as many as there are layers.
void JobMemory::Forget(const Recipe* recipe) {
  FreesThatAreDue due;
  ForgetOne(recipe, &due);
  while (!due.empty()) {
    Tracked* const memory = due[due.size() - 1];
    due.Truncate(due.size() - 1);
    const Recipe* const its_own = IsBlock(memory) ? nullptr : AsRange(memory)->recipe;
    if (its_own) ForgetOne(its_own, &due);
    GiveBack(memory, state_.timeline.Unfinished());
  }
}

void JobMemory::PutOffFree(Tracked* memory) {
  memory->free_is_due = true;
  if (IsBlock(memory)) return;
  put_off_.push_back(AsRange(memory));
  put_off_bytes_.fetch_add(memory->size_bytes, std::memory_order_relaxed);
}

// The plan has what the recipe makes dropped, now or later on, and made again before its next use (scheduler/plan/held_inputs.h).
bool JobMemory::ServesPlan(const Recipe& recipe) {
  const Range* const output = recipe.output;
  const bool is_going = output->place == Place::kLeaving && output->drops;
  if (is_going || IsDropped(output)) return state_.walk.ExpectsUse(output->id);
  return recipe.state == Recipe::State::kLive && state_.walk.ExpectsDrop(output->id);
}

bool JobMemory::IsHeldForPlan(const Tracked* memory) {
  const auto recipes = state_.recipes.Of(memory);
  return std::any_of(recipes.begin(), recipes.end(), [&](std::uint64_t id) SPILLWAY_REQUIRES(kStateLock) {
    const Recipe* const recipe = state_.recipes.Find(id);
    return recipe && recipe->output != memory && ServesPlan(*recipe);
  });
}

// The program frees it. Recipes that need it no more end.
bool JobMemory::IsStillNeeded(Tracked* memory) {
  if (!IsHeldForPlan(memory)) return Outdate(memory).range != nullptr;
  ++state_.counters.held_inputs;
  return ordering_rules::kHeldInputsStay;
}

// The first of what is dropped and can only be made from what the program has freed. What is not dropped is made from nothing any more.
Range* JobMemory::FirstThatFreesAwait(bool even_held, const InVain& in_vain) {
  Recipes::Ids readers;
  for (const Range* freed : put_off_) {
    for (const Recipe* reader : freed->readers) readers.push_back(reader->id);
  }
  for (const std::uint64_t id : readers) {
    const Recipe* const recipe = state_.recipes.Find(id);
    if (!recipe || (!even_held && ServesPlan(*recipe))) continue;
    const bool is_dropped = IsDropped(recipe->output);
    if (is_dropped && std::find(in_vain.begin(), in_vain.end(), recipe->output) == in_vain.end())
      return recipe->output;
    if (!is_dropped) Forget(recipe);
  }
  return nullptr;
}

// The program goes on without having freed what they wait for: it is made now. Where it cannot be, they wait. What a plan holds is left,
// but where even that is asked for.
void JobMemory::FinishFrees(base::FunctionRef<bool()> even_held) {
  InVain in_vain;
  while (put_off_bytes_.load(std::memory_order_relaxed) != 0) {
    Range* dropped;
    {
      const StateLock lock(state_.locks);
      dropped = FirstThatFreesAwait(even_held(), in_vain);
    }
    if (!dropped) return;
    const base::ScopedCount call(&state_.calls.for_memory);
    const MakingLock making(state_.locks);
    const std::uint64_t begun_ns = base::MonotonicNs();
    if (MakeAgain(dropped, nullptr, TraceCause::kDemand) == CUDA_SUCCESS) continue;
    if (base::MonotonicNs() - begun_ns > kWaitedNs) return;
    in_vain.push_back(dropped);
  }
}

// The memory is about to be written or freed: recipes that it has to do with end. Not those of what is dropped and made from it:
// then one of these is the answer, to be made first.
ToMake JobMemory::Outdate(Tracked* memory) {
  ToMake to_make;
  for (const std::uint64_t id : state_.recipes.Of(memory)) {
    const Recipe* const recipe = state_.recipes.Find(id);
    if (!recipe) continue;
    if (!IsDropped(recipe->output)) {
      Forget(recipe);
    } else if (recipe->output != memory) {
      to_make = {recipe->output, IsBlock(memory) ? AsBlock(memory) : nullptr};
    }
  }
  return to_make;
}

// What must be made before the call may be, one of it: what it names or reaches, and what is made from what it may write.
ToMake JobMemory::FirstToMake(const Addresses& addresses, Effect effect, const TouchSet& set) {
  if (state_.recipes.empty()) return {};
  ToMake first;
  const auto outdate = [&](Tracked* memory) SPILLWAY_REQUIRES(kStateLock) {
    if (const ToMake to_make = Outdate(memory); to_make.range) first = to_make;
  };
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    if (ordering_rules::kWritesAwaitRecipes && MayWrite(set, i, effect)) outdate(set.ranges[i]);
    if (IsDropped(set.ranges[i])) first = {set.ranges[i], nullptr};
  }
  const bool claims_hold = set.claims && !set.recorded && !set.reaches;
  for (CUdeviceptr address : addresses) {
    Allocation* const found = effect == Effect::kReads ? nullptr : state_.FindUsable(address);
    if (!found || !IsBlock(found)) continue;
    const Role role = claims_hold ? set.claims->RoleOf(*found, {addresses.begin(), addresses.size()})
                                  : Role::kReadsAndWrites;
    if (ordering_rules::kSmallWritesAwaitRecipes && role != Role::kReads)
      outdate(static_cast<Tracked*>(found));
  }
  for (Tracked* block : set.reached_blocks) outdate(block);
  return first;
}

CUresult JobMemory::MakeWhatItAwaits(const Addresses& addresses, Effect effect, TouchSet* set) {
  if (state_.recipes.empty()) return CUDA_SUCCESS;
  for (;;) {
    ToMake next;
    {
      const StateLock lock(state_.locks);
      Find(addresses, effect, set);
      next = FirstToMake(addresses, effect, *set);
    }
    if (!next.range) return CUDA_SUCCESS;
    if (next.small_input && SetAside(next.small_input)) continue;
    const CUresult made = MakeAgain(next.range, nullptr, TraceCause::kDemand);
    if (made != CUDA_SUCCESS) return made;
  }
}

CUresult JobMemory::MakeAgain(Range* wanted, StreamState* stream, TraceCause why) {
  for (;;) {
    Range* next;
    {
      const StateLock lock(state_.locks);
      next = FirstInChain(wanted);
    }
    if (!next) return CUDA_SUCCESS;
    const CUresult made = MakeOneAgain(next, stream, why);
    if (made != CUDA_SUCCESS) return made;
  }
}

// Nothing is done where another thread has changed what there is to do. The launch is made with the lock held under which the
// memory is given: nobody sees it without its bytes.
CUresult JobMemory::MakeOneAgain(Range* range, StreamState* stream, TraceCause why) {
  Inputs inputs;
  {
    const StateLock lock(state_.locks);
    if (!IsDropped(range) || DroppedInput(*range->recipe)) return CUDA_SUCCESS;
    for (Tracked* input : range->recipe->inputs) {
      if (!IsBlock(input)) inputs.push_back(AsRange(input));
    }
    for (Range* input : inputs) state_.residency.Pin(input);
    state_.residency.Pin(range);
  }
  bool all_there = PrepareInputs(inputs);
  for (Range* input : inputs) all_there = all_there && restores_.MakeResident(input, Role::kReads);
  CUresult result = CUDA_SUCCESS;
  all_there = all_there &&
              eviction_.MakeRoom(range->size_bytes, StallCause::kDemand, [&]() SPILLWAY_REQUIRES(kStateLock) {
                if (!IsDropped(range)) return true;  // it was freed
                if (!state_.residency.Revive(range)) return false;
                result = LaunchAgain(range->recipe, StreamForReplay(stream), why);
                if (result != CUDA_SUCCESS) state_.residency.DropAnew(range);
                return true;
              });
  if (!all_there) result = MakeWhereParked(range, inputs);
  {
    const StateLock lock(state_.locks);
    for (Range* input : inputs) state_.residency.Unpin(input);
    state_.residency.Unpin(range);
    const bool is_made = result == CUDA_SUCCESS;
    state_.counters.recomputes += is_made;
    state_.counters.recomputed_bytes += is_made ? range->requested_bytes : 0;
    state_.counters.demand_recomputes += is_made && why != TraceCause::kPlan;
  }
  parking_.EndMoving();
  return result;
}

// Kernels may use what is parked without naming it: its mapping changes while the device is idle. False when it may not.
bool JobMemory::PrepareInputs(const Inputs& inputs) {
  bool must_prepare;
  {
    const StateLock lock(state_.locks);
    const auto is_there = [this](const Range* input)
                              SPILLWAY_REQUIRES(kStateLock) { return state_.residency.IsMapped(input); };
    must_prepare = state_.trust.MustPark() && parking_.MustPrepare() &&
                   !std::all_of(inputs.begin(), inputs.end(), is_there);
  }
  return !must_prepare || parking_.PrepareToMove();
}

// The budget has become too small for output and inputs together: they are used as by a call that names as much. What the host is asked
// for is there when the lock is released: reads of parked memory wait for the program's streams only.
CUresult JobMemory::MakeWhereParked(Range* range, const Inputs& inputs) {
  const StateLock lock(state_.locks);
  if (!IsDropped(range)) return CUDA_SUCCESS;
  if (!restores_.ParkWhatIsAway({inputs.begin(), inputs.size()}) || !state_.residency.ReviveParked(range))
    return state_.OutOfMemory();
  StreamState* const stream = StreamForReplay(nullptr);
  const CUresult result = LaunchAgain(range->recipe, stream, TraceCause::kDemand);
  if (result != CUDA_SUCCESS) {
    state_.residency.DropAnew(range);
    return result;
  }
  return Driver().cuStreamSynchronize(stream->handle);
}

// The stream asked for by a plan, whose next operation is on it. Another one where work on it would wait for the program, or cannot be
// marked; and on demand: what the call stands behind may wait for the program without our knowing, and others need what is made.
StreamState* JobMemory::StreamForReplay(StreamState* asked) {
  const bool serves = asked && !asked->foreign && !asked->is_ours && !driver::ContextCensus::HasSeveral() &&
                      !CapturesGoOn() && !state_.timeline.AnyStreamIsHeld();
  if (serves) return asked;
  if (!replays_) {
    CUstream stream = nullptr;
    Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    replays_ = state_.timeline.Of({stream, false});
  }
  return replays_;
}

// Whoever writes what it reads, or uses what it makes, stands behind it.
CUresult JobMemory::LaunchAgain(Recipe* recipe, StreamState* stream, TraceCause why) {
  if (ordering_rules::kReplaysFollowInputs) {
    for (Tracked* input : recipe->inputs) state_.residency.OrderBehind(input, stream);
  }
  state_.residency.OrderBehind(recipe->output, stream);
  state_.timeline.OrderAfter(stream, recipe->made_by);
  if (recipe->writes_aside && scratch_use_.stream) state_.timeline.OrderAfter(stream, scratch_use_);
  const TraceMoment begun = state_.trace.Begin(stream->handle);
  const CUresult result = recipe->launch.LaunchOn(stream->handle);
  if (result != CUDA_SUCCESS) {
    state_.trace.Cancel(begun);
    return result;
  }
  TraceEvent event = TraceOf(TraceKind::kRecompute, recipe->output, why);
  event.stream = stream->number;
  state_.trace.End(stream->handle, begun, event);
  const Use use = state_.timeline.Issue(stream);
  state_.timeline.EventFor(use);
  if (recipe->writes_aside) scratch_use_ = use;
  if (ordering_rules::kWritesFollowReplays) {
    for (Tracked* input : recipe->inputs) NoteReplay(input, use);
  }
  if (ordering_rules::kUsesFollowReplays) NoteReplay(recipe->output, use);
  return CUDA_SUCCESS;
}

void JobMemory::NoteReplay(Tracked* memory, Use use) {
  memory->ready_after.Add(use);
  memory->ordered.clear();
  memory->ordered.push_back(Timeline::SerialOf(use.stream));
  memory->last_touch = TouchClock();
  if (!IsBlock(memory)) AsRange(memory)->uses.Add(use);
}

// Asked with the lock held: none is dropped any more once the caller has said why (a capture that began, say).
bool JobMemory::EndRecipes() {
  {
    const StateLock lock(state_.locks);
    if (state_.recipes.empty()) return true;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  return EndRecipesWhileMaking();
}

// What was launched for that is complete, too: its kernels may be about to go.
bool JobMemory::EndRecipesWhileMaking() {
  for (Range* dropped = nullptr;; dropped = nullptr) {
    {
      const StateLock lock(state_.locks);
      for (const std::uint64_t id : state_.recipes.All()) {
        const Recipe* const recipe = state_.recipes.Find(id);
        if (!recipe) continue;
        if (!IsDropped(recipe->output)) {
          Forget(recipe);
        } else {
          dropped = recipe->output;
        }
      }
    }
    if (!dropped) break;
    if (MakeAgain(dropped, nullptr, TraceCause::kDemand) == CUDA_SUCCESS) continue;
    const StateLock lock(state_.locks);
    return state_.residency.Health() !=
           CUDA_SUCCESS;  // then nothing can be made any more, and the driver says why
  }
  Use last;
  {
    const StateLock lock(state_.locks);
    if (replays_) last = {replays_, Timeline::IssuedOn(replays_)};
  }
  return !last.stream || waits_.AwaitQuietly(last);
}

// Kernels may write what recipes read, and read what is dropped, without naming it.
void JobMemory::EndRecipesIfUnproven() {
  {
    const StateLock lock(state_.locks);
    if (state_.recipes.empty() || !state_.trust.MustWait()) return;
  }
  EndRecipesWhileMaking();
}

bool JobMemory::AnyToRerun(const PlanStep& step) {
  const StateLock lock(state_.locks);
  return std::any_of(step.recompute.begin(), step.recompute.end(),
                     [this](const PlanStep::Rerun& rerun) SPILLWAY_REQUIRES(kStateLock) {
                       const Range* const range = state_.executor.Find(rerun.allocation);
                       return range && (rerun.drops ? state_.residency.IsMapped(range) : IsDropped(range));
                     });
}

// What the call needs itself is made as the plan says, and not on demand.
void JobMemory::MakeBeforeMemory(const Addresses& addresses, StreamName stream, Effect effect,
                                 TouchSet* set) {
  if (set->recorded || set->is_told) return;
  {
    const StateLock lock(state_.locks);
    Find(addresses, effect, set);
  }
  TellPlan(effect, set);
  if (set->awaits_look || !AnyToRerun(set->step)) return;
  Rerun(set->step, stream);
  set->step.recompute.clear();
}

// The call lets go of its memory meanwhile: who makes memory waits for calls, and none waits for who makes memory.
CUresult JobMemory::MakeBeforeOperation(const Addresses& addresses, StreamName stream, Effect effect,
                                        TouchSet* set) {
  if (set->awaits_look || !AnyToRerun(set->step)) return CUDA_SUCCESS;
  Withdraw(set);
  Rerun(set->step, stream);
  return BeginEither(addresses, stream, effect, set);
}

void JobMemory::Rerun(const PlanStep& step, StreamName stream) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    state_.executor.AskFor(step.prefetch);
  }
  for (const PlanStep::Rerun& rerun : step.recompute) {
    Range* range;
    StreamState* state;
    {
      const StateLock lock(state_.locks);
      range = state_.executor.Find(rerun.allocation);
      state = state_.timeline.Of(stream);
      if (rerun.drops && range) {
        PlanStep::Allocations one;
        one.push_back(rerun.allocation);
        DropOrSendAway(one);
      }
    }
    if (range && !rerun.drops) MakeAgain(range, state, TraceCause::kPlan);
  }
}

}  // namespace spillway::interposer
