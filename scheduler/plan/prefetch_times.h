// Moves each prefetch of a job's plan to the step in which the cost model starts it. Pure.
//
// A prefetch may start long after its trigger, but a job's program runs ahead of the device: later
// allocations could take its memory. So the executor gives the prefetch its memory before any to
// the next step.
#pragma once

#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {

// `timeline` is the model's for this plan, which must run. No prefetch moves before its trigger,
// past the step that needs it, or across the iteration's end.
Plan WithTimedPrefetches(const IterationProfile& profile, const Plan& plan,
                         const Timeline& timeline);

}  // namespace spillway::scheduler
