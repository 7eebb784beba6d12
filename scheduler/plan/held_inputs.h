// Keeps inputs in a live job after the program freed them, so that outputs can be dropped instead.
//
// A fully connected layer's weight gradient is many times as large as its inputs. Holding these
// while the gradient waits for the optimiser saves both copies of the gradient. The executor holds
// them (interposer/execute/state/recompute_record.h); the planner counts their memory. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// Dropped bytes must be at least this many times the held bytes.
inline constexpr int64_t kLeastGainOfHolding = 4;

// The profile with such inputs alive until the next touch of their output. Nullopt if none.
std::optional<IterationProfile> WithInputsHeld(const Problem& problem);

// False for a plan that does not match the profile.
bool ReliesOnHeldInputs(const IterationProfile& profile, const Plan& plan);

}  // namespace spillway::scheduler
