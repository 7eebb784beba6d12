// Inputs that a live job keeps for a while after the program has freed them, so that what they make
// can be dropped and made again.
//
// The weight gradient of a fully connected layer is many times as large as what it is made from.
// That is freed at once, while the gradient waits for the optimiser: held until then, it saves both
// copies of the gradient. The executor holds what a record of something dropped reads
// (interposer/execute/recompute_record.h); who plans counts its memory for as long.
//
// Called by job_planner, on any thread. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// What is dropped has so many times the bytes that are held for it.
inline constexpr int64_t kLeastGainOfHolding = 4;

// The problem's profile with longer lives for such inputs, until the next touch of what they make.
// Nothing where there are none.
std::optional<IterationProfile> WithInputsHeld(const Problem& problem);

// Whether the plan runs an operation again behind the free of what that reads. False for what is no
// plan of the profile's operations.
bool RunsAgainWhatIsFreed(const IterationProfile& profile, const Plan& plan);

}  // namespace spillway::scheduler
