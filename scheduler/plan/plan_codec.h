// A job's iteration and its plan as bytes, for the plan stores; and what another process needs to
// make that plan.
//
// Called by the stores, by jobs that let the agent plan, and by the processes that do; pure; any
// thread. Little-endian, one layout per version: a header (magic, version, bytes and hash of what
// follows), then every member in the order of plan_codec.cpp.
//
// Invariants
//  1. What Decode gives, Encode was given: whatever else the bytes are (cut off, altered, of
//  another version, made up), they
//     are refused with a reason, and reading stays within them.
//  2. A pattern that is given is one that the learner could have made: its indices lie within it,
//  its profile passes
//     CheckProfile, its fingerprint is its own.
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

inline constexpr std::uint32_t kPlanFileVersion = 7;

struct StoredPlan {
  IterationPattern pattern;  // with durations; persistent buffers' allocations are not kept
  Plan plan;
  std::int64_t budget_bytes = 0;      // that it was made for: what was left for what may move
  std::int64_t job_budget_bytes = 0;  // of this
  std::int64_t without_ns =
      0;  // what an iteration takes without a plan, with that budget; 0: not known
  bool is_no_better = false;  // the plan was followed, or priced, and was no better than that
};

std::vector<std::byte> Encode(const StoredPlan& stored);
// An error is one phrase about the bytes.
base::Result<StoredPlan> Decode(std::span<const std::byte> bytes);
// Whether bytes are a plan of this version that nothing happened to: header and hash alone, in the
// time that it takes to read them.
base::Status CheckUndamaged(std::span<const std::byte> bytes);

// A plan that is to be made: the job's plan names the strategy, and has no steps yet.
struct PlanOrder {
  DeviceModel device;
  StoredPlan job;
};

std::vector<std::byte> EncodeOrder(const PlanOrder& order);
// Like Decode. The device's numbers are within what a machine can have.
base::Result<PlanOrder> DecodeOrder(std::span<const std::byte> bytes);

}  // namespace spillway::scheduler
