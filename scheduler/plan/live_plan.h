// A plan in the executor's form: the actions before and after each event of a pattern.
//
// Made by the planner thread; an immutable snapshot that the job's threads read without allocating.
//
// Invariants
//   1. Actions name pattern buffers. Prefetches stand before an event, offloads and drops after
//      one, each in the plan's order.
//   2. A plan is a hint: the executor preserves memory contents whatever it says.
//   3. A buffer is dropped if it can be recomputed until the plan does so, or until its free. Every
//      other buffer is offloaded, even if dead: a job learns that only from the call that
//      overwrites or frees it.
//   4. Recomputations stand before an event: after the prefetches that they may need, and before
//      those of the event's own operation. Temporary buffers are dropped between them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/plan/plan.h"

namespace spillway::scheduler {

enum class LiveActionKind : uint8_t {
  kOffload,  // no copy if the host copy is still valid
  kPrefetch,
  kDrop,       // recomputable, so no copy
  kRecompute,  // by the operation that wrote it last
};

struct LiveAction {
  LiveActionKind kind = LiveActionKind::kOffload;
  int32_t buffer = -1;

  bool operator==(const LiveAction&) const = default;
};

class LivePlan {
 public:
  // Nullopt if the plan does not match the pattern's profile, or reruns an operation with several
  // outputs. `predicted_ns` is from the cost model.
  static std::optional<LivePlan> Make(std::shared_ptr<const IterationPattern> pattern,
                                      const Plan& plan, int64_t predicted_ns, int64_t budget_bytes);

  const IterationPattern& pattern() const { return *pattern_; }
  const std::shared_ptr<const IterationPattern>& shared_pattern() const { return pattern_; }
  const std::string& strategy() const { return strategy_; }
  int64_t predicted_ns() const { return predicted_ns_; }
  // One after another, without any plan.
  int64_t operations_ns() const { return operations_ns_; }
  // Beside them, for recomputing.
  int64_t repeated_ns() const { return repeated_ns_; }
  int64_t budget_bytes() const { return budget_bytes_; }

  std::span<const LiveAction> Before(int32_t event) const { return At(before_, event); }
  std::span<const LiveAction> After(int32_t event) const { return At(after_, event); }
  // The operation's output is dropped later; it then reruns, as planned or on demand.
  bool IsRerunLater(int32_t event) const { return is_rerun_later_[static_cast<size_t>(event)]; }
  // The event of the buffer's last drop; -1: never dropped.
  int32_t LastDrop(int32_t buffer) const { return last_drops_[static_cast<size_t>(buffer)]; }
  int64_t action_count() const {
    return static_cast<int64_t>(before_.actions.size() + after_.actions.size());
  }

 private:
  struct ByEvent {
    std::vector<LiveAction> actions;
    std::vector<int32_t> begins;                        // by event, plus the end
    std::vector<std::pair<int32_t, LiveAction>> added;  // until Sort()

    void Add(int32_t event, LiveAction action) { added.emplace_back(event, action); }
    // Call after the last Add; stable within an event.
    void Sort(int32_t events);
  };
  static std::span<const LiveAction> At(const ByEvent& list, int32_t event) {
    const auto i = static_cast<size_t>(event);
    return std::span(list.actions)
        .subspan(static_cast<size_t>(list.begins[i]),
                 static_cast<size_t>(list.begins[i + 1] - list.begins[i]));
  }
  void AddPrefetches(const Plan& plan, const std::vector<int32_t>& events, bool behind_reruns);
  void AddReruns(const Plan& plan, const std::vector<int32_t>& events);
  void NoteRecords(const Plan& plan);
  void NoteDrops(const Plan& plan, const std::vector<int32_t>& events);

  std::shared_ptr<const IterationPattern> pattern_;
  std::string strategy_;
  int64_t predicted_ns_ = 0;
  int64_t operations_ns_ = 0, repeated_ns_ = 0;
  int64_t budget_bytes_ = 0;
  ByEvent before_, after_;
  std::vector<bool> is_rerun_later_;  // by event
  std::vector<int32_t> last_drops_;   // by buffer
};

// Possibly with duplicates. The plan must match.
std::vector<OperationId> OperationsToRerun(const IterationProfile& profile, const Plan& plan);

}  // namespace spillway::scheduler
