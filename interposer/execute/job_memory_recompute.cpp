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

CUresult JobMemory::MakeWhatItAwaits(const Addresses& addresses, Effect effect, TouchSet* set) {
  if (state_.recipes.empty()) return CUDA_SUCCESS;
  for (;;) {
    ToMake next;
    {
      const StateLock lock(state_.locks);
      Find(addresses, effect, set);
      next = replays_.FirstToMake(addresses, effect, *set);
    }
    if (!next.range) return CUDA_SUCCESS;
    if (next.small_input && input_copies_.SetAside(next.small_input)) continue;
    const CUresult made = replays_.MakeAgain(next.range, nullptr, TraceCause::kDemand);
    if (made != CUDA_SUCCESS) return made;
  }
}

// What the call needs itself is made as the plan says, and not on demand.
void JobMemory::MakeBeforeMemory(const Addresses& addresses, StreamName stream, Effect effect,
                                 TouchSet* set) {
  if (set->recorded || set->is_told) return;
  {
    const StateLock lock(state_.locks);
    Find(addresses, effect, set);
  }
  plan_.TellPlan(effect, set);
  if (set->awaits_look || !plan_.AnyToRerun(set->step)) return;
  plan_.Rerun(set->step, stream);
  set->step.recompute.clear();
}

// The call lets go of its memory meanwhile: who makes memory waits for calls, and none waits for who makes memory.
CUresult JobMemory::MakeBeforeOperation(const Addresses& addresses, StreamName stream, Effect effect,
                                        TouchSet* set) {
  if (set->awaits_look || !plan_.AnyToRerun(set->step)) return CUDA_SUCCESS;
  Withdraw(set);
  plan_.Rerun(set->step, stream);
  return BeginEither(addresses, stream, effect, set);
}

}  // namespace spillway::interposer
