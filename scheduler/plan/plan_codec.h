// Encodes a job's iteration and its plan, for plan stores and for planning in other processes.
//
// Pure; any thread. Little-endian: a header (magic, version, size and hash of the rest), then all
// members in the order of plan_codec.cpp.
//
// Invariants
//  1. Decode returns only values that Encode was given. It refuses all other bytes (cut off,
//     altered, of another version, forged) with a reason, and never reads beyond them.
//  2. The learner could have made any pattern returned: indices are in range, the profile passes
//     CheckProfile, and the fingerprint matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

inline constexpr std::uint32_t kPlanFileVersion = 9;

struct StoredPlan {
  IterationPattern pattern;  // with durations, without persistent buffers' allocations
  Plan plan;
  std::int64_t budget_bytes = 0;  // for movable memory
  std::int64_t job_budget_bytes = 0;
  std::int64_t without_ns = 0;  // the iteration time without a plan at that budget; 0: unknown
  bool is_no_better = false;    // no better than no plan, as followed or as priced
};

std::vector<std::byte> Encode(const StoredPlan& stored);
// The error is one phrase about the bytes.
base::Result<StoredPlan> Decode(std::span<const std::byte> bytes);
// Checks only header and hash.
base::Status CheckUndamaged(std::span<const std::byte> bytes);

// A request for a plan: the job's plan names the strategy and has no steps yet.
struct PlanOrder {
  DeviceModel device;
  StoredPlan job;
};

std::vector<std::byte> EncodeOrder(const PlanOrder& order);
// The device's numbers are in plausible ranges.
base::Result<PlanOrder> DecodeOrder(std::span<const std::byte> bytes);

}  // namespace spillway::scheduler
