// When a plan's prefetches start by the cost model, written into the plan: what a job that follows
// it goes by.
//
// A prefetch may start long after its trigger: when the engine is free and memory is there. A job's
// program runs ahead of the device, so there "memory is free" comes in another order: what is
// allocated for later operations could be given what the model gives to the prefetch. The order in
// which memory is taken is therefore part of the plan: each prefetch is moved to the step in which
// the model starts it, and whoever follows the plan gives it memory before it gives any to the next
// step.
//
// Called by whoever makes plans for jobs, on any thread. Pure.
#pragma once

#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {

// `timeline` is the model's of this very plan, which runs. Steps and all other actions are as they
// were. No prefetch moves to before its trigger, beyond the step that needs it, or across the end
// of the iteration.
Plan WithPrefetchesWhenTheyStart(const IterationProfile& profile, const Plan& plan,
                                 const Timeline& timeline);

}  // namespace spillway::scheduler
