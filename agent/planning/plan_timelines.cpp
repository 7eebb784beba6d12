#include "agent/planning/plan_timelines.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/planning/worker_process.h"
#include "base/file.h"
#include "base/result.h"
#include "protocol/bulk.h"

namespace spillway::agent {
namespace {

using nlohmann::ordered_json;

constexpr WorkerLimits kLimits = {.memory_bytes = int64_t{1} << 30, .cpu_seconds = 3};
constexpr size_t kMostAnswerBytes = 256 << 10;
constexpr int kMostDepth = 4;  // timeline_worker.cpp makes 3; what copies or writes JSON recurses

// Of the ended or killed worker.
int EndOf(const WorkerProcess& worker) {
  pollfd ended{worker.file(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(PlanTimelines::kMostNs / 1'000'000)) <= 0) worker.Kill();
  return worker.Reap();
}

std::string AnswerIn(int file) {
  const off_t size = std::max<off_t>(lseek(file, 0, SEEK_END), 0);
  return base::ReadFirst(file, std::min(static_cast<size_t>(size), kMostAnswerBytes)).value_or("");
}

base::Result<ordered_json> TimelineOf(const std::vector<std::string>& command,
                                      const std::string& plan) {
  const base::UniqueFd request = protocol::SealedCopy(plan);
  const base::UniqueFd answer(memfd_create("spillway-timeline", MFD_CLOEXEC));
  if (!request || !answer) return base::ErrnoError("no timeline");
  const auto worker = WorkerProcess::Start(command, kLimits, request.get(), answer.get());
  if (!worker) return base::ErrnoError("no timeline");
  const int end = EndOf(*worker);
  const std::string text = AnswerIn(answer.get());
  if (end == static_cast<int>(WorkerEnd::kRefused)) return base::Error{"no timeline", text};
  ordered_json json = ordered_json::parse(
      text,
      [](int depth, ordered_json::parse_event_t, ordered_json&) { return depth <= kMostDepth; },
      false);
  if (end != static_cast<int>(WorkerEnd::kMade) || !json.is_object())
    return base::Error{"no timeline", "the process that makes it ended without one"};
  return json;
}

}  // namespace

std::string PlanTimelines::JsonOf(const std::vector<ShownPlans::Plan>& plans) const {
  ordered_json json = {{"schema", 1}, {"plans", ordered_json::array()}};
  for (auto plan = plans.rbegin(); plan != plans.rend() && json["plans"].size() < kMostPlans;
       ++plan) {
    ordered_json shown = {{"device", plan->device}, {"origin", plan->origin}};
    base::Result<ordered_json> timeline = TimelineOf(worker_, *plan->bytes);
    if (timeline) shown.update(*timeline);
    if (!timeline) shown["error"] = timeline.text();
    json["plans"].push_back(std::move(shown));
  }
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::agent
