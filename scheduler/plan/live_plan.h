// A plan as the executor walks it: for every event of a pattern, what to begin before it and after
// it.
//
// Made from a pattern and a plan for its profile by whoever plans (the planner thread, the agent's
// answer); published as a shared snapshot that nobody changes; read by the job's threads. Walking
// it allocates nothing.
//
// Invariants
//   1. Actions name pattern buffers. Prefetches stand before an event, offloads and drops after
//   one; each in the plan's order.
//   2. It is a hint: whoever walks it keeps memory's contents whatever it says.
//   3. What can be made again until the plan has it made again, or until it is freed, is dropped;
//   whatever else leaves is offloaded,
//      also what the plan knows to be dead: only the call that overwrites or frees it tells a job
//      so.
//   4. What is made again stands before an event, between the prefetches that it may need and those
//   of the event's own operation. What
//      only served to make others is dropped between.
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
  kOffload,  // needs no copy where the host's is still valid
  kPrefetch,
  kDrop,       // can be made again from what is there: no copy
  kRecompute,  // made again by the operation that wrote it last
};

struct LiveAction {
  LiveActionKind kind = LiveActionKind::kOffload;
  int32_t buffer = -1;

  bool operator==(const LiveAction&) const = default;
};

class LivePlan {
 public:
  // Nothing where the plan is not one for the pattern's profile, or runs an operation again that
  // writes several buffers. `predicted_ns` is the iteration's time by the cost model.
  static std::optional<LivePlan> Make(std::shared_ptr<const IterationPattern> pattern,
                                      const Plan& plan, int64_t predicted_ns, int64_t budget_bytes);

  const IterationPattern& pattern() const { return *pattern_; }
  const std::shared_ptr<const IterationPattern>& shared_pattern() const { return pattern_; }
  const std::string& strategy() const { return strategy_; }
  int64_t predicted_ns() const { return predicted_ns_; }
  int64_t budget_bytes() const { return budget_bytes_; }

  std::span<const LiveAction> Before(int32_t event) const { return At(before_, event); }
  std::span<const LiveAction> After(int32_t event) const { return At(after_, event); }
  // What this event's operation writes is dropped later on: it is made again by it, then or if it
  // is asked for after all.
  bool RunsAgain(int32_t event) const { return runs_again_[static_cast<size_t>(event)]; }
  // The event at which the buffer is dropped for the last time; -1: never.
  int32_t LastDrop(int32_t buffer) const { return last_drops_[static_cast<size_t>(buffer)]; }
  int64_t action_count() const {
    return static_cast<int64_t>(before_.actions.size() + after_.actions.size());
  }

 private:
  struct ByEvent {
    std::vector<LiveAction> actions;
    std::vector<int32_t> begins;                        // by event, and the end
    std::vector<std::pair<int32_t, LiveAction>> added;  // until sorted

    void Add(int32_t event, LiveAction action) { added.emplace_back(event, action); }
    // After all are added; those of one event stay in the order in which they were.
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
  int64_t budget_bytes_ = 0;
  ByEvent before_, after_;
  std::vector<bool> runs_again_;     // by event
  std::vector<int32_t> last_drops_;  // by buffer
};

// Those that made what the plan drops: it is made again by them, as planned or when somebody asks
// for it after all. The plan is one for the profile; one may be named several times.
std::vector<OperationId> OperationsThatMustRunAgain(const IterationProfile& profile,
                                                    const Plan& plan);

}  // namespace spillway::scheduler
