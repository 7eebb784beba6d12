#include "agent/http/page_source.h"

#include <time.h>

#include <algorithm>

#include "agent/http/metrics.h"
#include "agent/http/routes.h"
#include "agent/report/live_pages.h"
#include "agent/report/pages.h"

namespace spillway::agent {
namespace {

constexpr char kJson[] = "application/json";

int64_t MillisecondsSince1970() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool HasJob(const NodeReport& report, const std::string& name) {
  return std::any_of(report.jobs.begin(), report.jobs.end(),
                     [&](const JobReport& job) { return job.name == name; });
}

HttpAnswer Json(std::string text) { return {.type = kJson, .body = TextPage(std::move(text))}; }

HttpAnswer Asked(protocol::Question question, const std::string& job, const NodeReport& report) {
  protocol::Ask ask;
  ask.question = question;
  ask.form = protocol::Form::kJson;
  ask.job = job;
  return Json(PageOf(ask, report));
}

}  // namespace

HttpAnswer PageSource::Scrape() const {
  const auto used_bytes = used_ != nullptr ? used_->Read() : std::map<std::string, int64_t>();
  return {.type = "text/plain; version=0.0.4; charset=utf-8",
          .body = TextPage(MetricsOf(*latest_.Get(), used_bytes))};
}

HttpAnswer PageSource::Make(const std::string& path) {
  const std::shared_ptr<const NodeReport> report = latest_.Get();
  const Route route = RouteOf(path);
  if (route.page == Page::kEvents) return Sample(*report);
  if (route.page == Page::kStatus) return Asked(protocol::Question::kStatus, "", *report);
  if (route.page == Page::kHistory) return Json(DeviceHistory(*report, history_));
  if (route.page == Page::kJobHistory) return Json(JobHistory(route.job, *report, history_));
  if (!HasJob(*report, route.job)) return ErrorAnswer(404, "there is no such job");
  return Asked(protocol::Question::kJob, route.job, *report);
}

HttpAnswer PageSource::Plan(const std::string& path) const {
  const std::string job = RouteOf(path).job;
  if (!HasJob(*latest_.Get(), job)) return ErrorAnswer(404, "there is no such job");
  return Json(plans_ ? plans_(job) : "{\"schema\":1,\"plans\":[]}\n");
}

HttpAnswer PageSource::Sample(const NodeReport& report) {
  history_.Add(report, MillisecondsSince1970());
  return {.body = TextPage(is_watched_ ? EventOf(report, history_) : "")};
}

}  // namespace spillway::agent
