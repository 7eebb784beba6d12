#include "agent/planning/timeline_worker.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "agent/planning/confinement.h"
#include "agent/planning/plan_timeline.h"
#include "agent/planning/worker_files.h"
#include "scheduler/plan/plan_explainer.h"

namespace spillway::agent {
namespace {

using nlohmann::ordered_json;

const char* NameOf(scheduler::ActionKind kind) {
  if (kind == scheduler::ActionKind::kPrefetch) return "comes back";
  return kind == scheduler::ActionKind::kDrop ? "is dropped" : "leaves";
}

ordered_json JsonOf(const PlanMove& move) {
  return {{"kind", NameOf(move.action.kind)},
          {"size_bytes", move.size_bytes},
          {"buffer", move.action.buffer.index},
          {"step", move.action.step},
          {"operation", move.operation},
          {"at_ns", move.at_ns},
          {"reason", scheduler::ToString(move.action.reason)}};
}

ordered_json ValuesOf(const PlanTimeline& timeline, int64_t TimelinePart::*place) {
  ordered_json values = ordered_json::array();
  for (const TimelinePart& part : timeline.parts) values.push_back(part.*place);
  return values;
}

ordered_json BeginsOf(const PlanTimeline& timeline) {
  ordered_json begins = ordered_json::array();
  const double parts = static_cast<double>(timeline.parts.size());
  for (size_t i = 0; i < timeline.parts.size(); ++i)
    begins.push_back(static_cast<int64_t>(static_cast<double>(timeline.iteration_ns) *
                                          static_cast<double>(i) / parts));
  return begins;
}

std::string JsonOf(const scheduler::StoredPlan& stored, const PlanTimeline& timeline) {
  ordered_json json = {
      {"strategy", stored.plan.strategy},
      {"budget_bytes", stored.budget_bytes},
      {"iteration_ns", timeline.iteration_ns},
      {"operations", stored.pattern.profile.operations.size()},
      {"recomputed", timeline.recomputed},
      {"to_host_bytes", timeline.to_host_bytes},
      {"to_device_bytes", timeline.to_device_bytes},
      {"dropped_bytes", timeline.dropped_bytes},
      {"at_ns", BeginsOf(timeline)},
      {"wanted_bytes", ValuesOf(timeline, &TimelinePart::wanted_bytes)},
      {"resident_bytes", ValuesOf(timeline, &TimelinePart::resident_bytes)},
      {"moved_to_host_bytes", ValuesOf(timeline, &TimelinePart::to_host_bytes)},
      {"moved_to_device_bytes", ValuesOf(timeline, &TimelinePart::to_device_bytes)},
      {"moved_dropped_bytes", ValuesOf(timeline, &TimelinePart::dropped_bytes)},
      {"largest", ordered_json::array()}};
  for (const PlanMove& move : timeline.largest) json["largest"].push_back(JsonOf(move));
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

int RunTimelineWorker(const WorkerLimits& limits) {
  if (!Confine(limits)) return static_cast<int>(WorkerEnd::kNotConfined);
  const std::string bytes = WorkerRequest();
  const auto stored = scheduler::Decode(std::as_bytes(std::span(bytes)));
  if (!stored) return AnswerAsWorker(WorkerEnd::kRefused, stored.text());
  const base::Result<PlanTimeline> timeline = TimelineOf(*stored);
  if (!timeline) return AnswerAsWorker(WorkerEnd::kRefused, timeline.text());
  return AnswerAsWorker(WorkerEnd::kMade, JsonOf(*stored, *timeline));
}

}  // namespace spillway::agent
