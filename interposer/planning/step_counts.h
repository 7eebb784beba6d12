// The times of a job's followed iterations, and what moving memory costs of them.
//
// Written by the planner thread, read by any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "protocol/message.h"
#include "scheduler/plan/live_plan.h"

namespace spillway::interposer {

struct StepCounts {
  std::atomic<std::uint64_t> sum_ns{0};
  std::array<std::atomic<std::uint64_t>, protocol::kStepSeconds.size() + 1> by_time{};
  // Of iterations that followed one plan: their time, what it costs of that, and of this what
  // recomputes.
  std::atomic<std::uint64_t> planned_ns{0}, lost_ns{0}, repeated_ns{0};

  void Note(std::int64_t duration_ns) {
    sum_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 0));
    ++by_time[protocol::StepBucketOf(duration_ns)];
  }
  // The cost is as predicted, but no more than the iteration shows. What it takes beyond that may
  // be the program's own waits, for input say.
  void NoteFollowed(const scheduler::LivePlan& plan, std::int64_t duration_ns) {
    const std::int64_t most_ns = std::min(duration_ns, plan.predicted_ns());
    const std::int64_t cost_ns = std::max<std::int64_t>(most_ns - plan.operations_ns(), 0);
    planned_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 0));
    lost_ns += static_cast<std::uint64_t>(cost_ns);
    repeated_ns += static_cast<std::uint64_t>(std::min(cost_ns, plan.repeated_ns()));
  }
};

}  // namespace spillway::interposer
