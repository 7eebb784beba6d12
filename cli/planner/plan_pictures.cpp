#include "cli/planner/plan_pictures.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/html_text.h"

namespace spillway::cli {
namespace {

using namespace scheduler;

constexpr int kWidth = 1200, kLeft = 90, kMemoryTop = 50, kMemoryHeight = 360, kLaneTop = 440,
              kLaneHeight = 26;

std::string Format(const char* format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

class SvgPicture {
 public:
  SvgPicture(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem), plan_(plan), timeline_(timeline) {
    begin_ns_ = timeline.iteration_start_ns.back();
    length_ns_ = std::max<int64_t>(1, timeline.step_end_ns.back() - begin_ns_);
    most_bytes_ = problem.budget_bytes;
    for (const auto& [time_ns, used_bytes] : timeline.used_bytes)
      most_bytes_ = std::max(most_bytes_, used_bytes);
  }

  std::string Draw() {
    text_ = Format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        kWidth, kLaneTop + 4 * kLaneHeight + 40);
    Text(kLeft, 24,
         plan_.strategy + ", " + problem_.iteration().name + ", budget " +
             base::FormatBytes(static_cast<uint64_t>(problem_.budget_bytes)) + " (modelled)");
    DrawMemory();
    DrawLanes();
    return text_ + "</svg>\n";
  }

 private:
  double X(int64_t time_ns) const {
    const double part = static_cast<double>(time_ns - begin_ns_) / static_cast<double>(length_ns_);
    return kLeft + std::clamp(part, 0.0, 1.0) * (kWidth - kLeft - 20);
  }
  double Y(int64_t bytes) const {
    return kMemoryTop + kMemoryHeight * (1.0 - static_cast<double>(bytes) /
                                                   (1.05 * static_cast<double>(most_bytes_)));
  }
  void Text(double x, double y, const std::string& text) {
    text_ += Format("<text x=\"%.1f\" y=\"%.1f\">", x, y) + EscapeHtml(text) + "</text>\n";
  }

  void DrawMemory() {
    int64_t used_bytes = 0;
    std::string points;
    bool inside = false;
    for (const auto& [time_ns, bytes] : timeline_.used_bytes) {
      if (time_ns >= begin_ns_) {
        if (!inside) points += Format("%.2f,%.2f ", X(begin_ns_), Y(used_bytes));
        inside = true;
        points += Format("%.2f,%.2f %.2f,%.2f ", X(time_ns), Y(used_bytes), X(time_ns), Y(bytes));
      }
      used_bytes = bytes;
    }
    points += Format("%.2f,%.2f", X(begin_ns_ + length_ns_), Y(used_bytes));
    text_ += "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"1\" points=\"" + points +
             "\"/>\n";
    Line(Y(problem_.budget_bytes), "#c0392b");
    Text(8, Y(problem_.budget_bytes) + 4, "budget");
    Line(Y(0), "#888");
    Text(8, Y(0) + 4, "0");
    Text(8, kMemoryTop - 8, "memory in use");
    Text(kLeft, kMemoryTop + kMemoryHeight + 14,
         Format("one iteration: %.3f ms", static_cast<double>(length_ns_) / 1e6));
  }

  void Line(double y, const char* colour) {
    text_ += Format(
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-dasharray=\"4 "
        "3\"/>\n",
        kLeft, kWidth - 20, y, y, colour);
  }

  void Bar(int lane, int64_t start_ns, int64_t end_ns, const char* colour,
           const std::string& title) {
    if (end_ns <= begin_ns_) return;
    text_ += Format("<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>",
                    X(start_ns), kLaneTop + lane * kLaneHeight,
                    std::max(0.2, X(end_ns) - X(start_ns)), kLaneHeight - 6, colour) +
             EscapeHtml(title) + "</title></rect>\n";
  }

  void DrawLanes() {
    const IterationProfile& profile = problem_.iteration();
    constexpr const char* kNames[] = {"compute", "to host", "to device"};
    for (int lane = 0; lane < 3; ++lane) Text(8, kLaneTop + lane * kLaneHeight + 14, kNames[lane]);
    const size_t first = timeline_.last_iteration_step();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      Bar(0, timeline_.step_start_ns[first + i], timeline_.step_end_ns[first + i],
          step.recomputes ? "#e67e22" : "#27ae60",
          (step.recomputes ? "again: " : "") + profile.at(step.operation).name);
    }
    for (const CopyTime& copy : timeline_.to_host)
      Bar(1, copy.start_ns, copy.end_ns, "#8e44ad", profile.at(copy.buffer).name);
    for (const CopyTime& copy : timeline_.to_device)
      Bar(2, copy.start_ns, copy.end_ns, "#2980b9", profile.at(copy.buffer).name);
    Text(kLeft, kLaneTop + 3 * kLaneHeight + 20, "green: operations; orange: operations run again");
  }

  const Problem& problem_;
  const Plan& plan_;
  const Timeline& timeline_;
  int64_t begin_ns_ = 0, length_ns_ = 1, most_bytes_ = 1;
  std::string text_;
};

using Json = nlohmann::ordered_json;

Json Span(const std::string& name, int lane, int64_t start_ns, int64_t end_ns) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", 1},
          {"tid", lane},
          {"ts", static_cast<double>(start_ns) / 1000},
          {"dur", static_cast<double>(end_ns - start_ns) / 1000}};
}

}  // namespace

std::string PlanToSvg(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  return SvgPicture(problem, plan, timeline).Draw();
}

std::string PlanToPerfetto(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  const IterationProfile& profile = problem.iteration();
  const int64_t begin_ns = timeline.iteration_start_ns.back();
  Json events = Json::array();
  constexpr const char* kLanes[] = {"compute", "to host", "to device"};
  for (int lane = 0; lane < 3; ++lane)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", lane},
                      {"args", {{"name", kLanes[lane]}}}});
  const size_t first = timeline.last_iteration_step();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const std::string& name = profile.at(plan.steps[i].operation).name;
    events.push_back(Span(plan.steps[i].recomputes ? name + " (again)" : name, 0,
                          timeline.step_start_ns[first + i] - begin_ns,
                          timeline.step_end_ns[first + i] - begin_ns));
  }
  int lane = 1;
  for (const auto* copies : {&timeline.to_host, &timeline.to_device}) {
    for (const CopyTime& copy : *copies) {
      if (copy.end_ns > begin_ns)
        events.push_back(Span(profile.at(copy.buffer).name, lane, copy.start_ns - begin_ns,
                              copy.end_ns - begin_ns));
    }
    ++lane;
  }
  for (const auto& [time_ns, bytes] : timeline.used_bytes) {
    if (time_ns < begin_ns) continue;
    events.push_back(
        {{"name", "memory"},
         {"ph", "C"},
         {"pid", 1},
         {"ts", static_cast<double>(time_ns - begin_ns) / 1000},
         {"args",
          {{"used", bytes}, {"free", std::max<int64_t>(0, problem.budget_bytes - bytes)}}}});
  }
  const Json document = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  return document.dump() + "\n";
}

}  // namespace spillway::cli
