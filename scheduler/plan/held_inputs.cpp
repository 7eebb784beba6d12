#include "scheduler/plan/held_inputs.h"

#include <algorithm>
#include <vector>

#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler {
namespace {

bool IsFreedBefore(const Buffer& buffer, OperationId operation) {
  return !buffer.persistent && buffer.dies < operation;
}

// Empty also if their memory would cost too much: of what can be recomputed, only addresses are
// held.
std::vector<BufferId> InputsToHold(const IterationProfile& profile, const RecomputeChains& chains,
                                   OperationId maker, BufferId made, OperationId until) {
  std::vector<BufferId> freed;
  int64_t freed_bytes = 0;
  for (const BufferId read : profile.at(maker).reads) {
    const Buffer& buffer = profile.at(read);
    if (!IsFreedBefore(buffer, until)) continue;
    if (buffer.handed_on) return {};
    freed.push_back(read);
    if (!chains.IsRecomputableAt(read, maker, until)) freed_bytes += buffer.size_bytes;
  }
  if (freed_bytes > profile.at(made).size_bytes / kLeastGainOfHolding) return {};
  return freed;
}

void Hold(const IterationProfile& profile, const RecomputeChains& chains, OperationId maker,
          const IdleInterval& interval, std::optional<IterationProfile>& held) {
  for (const BufferId input : InputsToHold(profile, chains, maker, interval.buffer, interval.to)) {
    if (!held) held = profile;
    OperationId& dies = held->buffers[static_cast<size_t>(input.index)].dies;
    dies = std::max(dies, interval.to);
  }
}

}  // namespace

std::optional<IterationProfile> WithInputsHeld(const Problem& problem) {
  const IterationProfile& profile = problem.iteration();
  const RecomputeChains chains(problem);
  std::optional<IterationProfile> held;
  for (const IdleInterval& interval : IdleIntervals(profile, problem.min_movable_bytes)) {
    if (interval.wraps || interval.content_dead) continue;
    const auto is_held = [&](BufferId id) { return id != interval.buffer; };
    for (const OperationId maker : chains.Find({interval.buffer}, interval.to, is_held))
      Hold(profile, chains, maker, interval, held);
  }
  return held;
}

bool ReliesOnHeldInputs(const IterationProfile& profile, const Plan& plan) {
  int32_t next = 0;  // the first operation that has not begun
  size_t action = 0;
  const auto is_freed = [&](BufferId id) { return IsFreedBefore(profile.at(id), {next}); };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (static_cast<size_t>(step.operation.index) >= profile.operations.size()) return false;
    const std::vector<BufferId>& reads = profile.at(step.operation).reads;
    if (step.recomputes && std::any_of(reads.begin(), reads.end(), is_freed)) return true;
    if (!step.recomputes) ++next;
    for (; action < plan.actions.size() && plan.actions[action].step <= static_cast<int32_t>(i);
         ++action) {
      const Action& it = plan.actions[action];
      if (static_cast<size_t>(it.buffer.index) >= profile.buffers.size()) return false;
      if (it.kind != ActionKind::kPrefetch && is_freed(it.buffer)) return true;
    }
  }
  return false;
}

}  // namespace spillway::scheduler
