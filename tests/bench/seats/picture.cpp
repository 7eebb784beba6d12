#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/bench/seats/report.h"

namespace spillway::seats {
namespace {

constexpr int kWidth = 1180, kHeight = 460, kTop = 60, kBottom = 90;
constexpr int kPanelWidth = 400, kGap = 80, kLeft = 60;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 10'000;
constexpr const char* kColours[] = {"#000",    "#2ca02c", "#d62728", "#ff7f0e", "#9467bd",
                                    "#8c564b", "#e377c2", "#1f77b4", "#7f7f7f"};

std::string Format(const char* format, auto... values) {
  char text[320];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}

double YOf(double part) { return kHeight - kBottom - part * (kHeight - kTop - kBottom); }

// A value's place between the bottom (0) and the top (1) of its panel.
struct Panel {
  int left;
  double (*place)(const Result& result);
  bool has_alone;
};

double PlaceOfSeconds(double seconds) {
  const double part = std::log10(std::clamp(seconds, kLeastSeconds, kMostSeconds) / kLeastSeconds) /
                      std::log10(kMostSeconds / kLeastSeconds);
  return part;
}
double PlaceOfLatency(const Result& result) {
  return PlaceOfSeconds(static_cast<double>(result.LatencyNs(95)) / 1e9);
}
double PlaceOfBatch(const Result& result) { return std::min(result.batch_share, 1.0); }

constexpr Panel kLatency = {kLeft, PlaceOfLatency, true};
constexpr Panel kBatch = {kLeft + kPanelWidth + kGap, PlaceOfBatch, false};

std::vector<std::string> NamesOf(const std::vector<Row>& rows, std::string Row::*name) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (std::find(names.begin(), names.end(), row.*name) == names.end()) names.push_back(row.*name);
  }
  return names;
}

double XOf(const Panel& panel, size_t scenario, size_t scenarios) {
  return panel.left +
         kPanelWidth * (static_cast<double>(scenario) + 0.5) / static_cast<double>(scenarios);
}

std::string Grid(const Panel& panel, double part, const std::string& label) {
  return Format("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", panel.left,
                panel.left + kPanelWidth, YOf(part), YOf(part)) +
         Text(panel.left - 6, YOf(part) + 4, "end", label);
}

std::string Axes(const std::vector<std::string>& scenarios) {
  std::string text;
  for (const double seconds : {0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0})
    text += Grid(kLatency, PlaceOfSeconds(seconds), Format("%g s", seconds));
  for (int percent = 0; percent <= 100; percent += 20)
    text += Grid(kBatch, percent / 100.0, Format("%d %%", percent));
  text += Text(kLatency.left, kTop - 14, "start", "requests' latency, 95th percentile");
  text += Text(kBatch.left, kTop - 14, "start", "batch steps, of the same jobs one after another");
  for (const Panel& panel : {kLatency, kBatch}) {
    for (size_t i = 0; i < scenarios.size(); ++i)
      text += Text(XOf(panel, i, scenarios.size()), kHeight - kBottom + 18 + (i % 2) * 16.0,
                   "middle", scenarios[i]);
  }
  return text;
}

std::string Line(const Panel& panel, const std::vector<Row>& rows, const std::string& policy,
                 const std::vector<std::string>& scenarios, size_t index) {
  std::string points, dots;
  for (const Row& row : rows) {
    if (row.policy != policy) continue;
    const auto place = std::find(scenarios.begin(), scenarios.end(), row.scenario);
    const double x = XOf(panel, static_cast<size_t>(place - scenarios.begin()), scenarios.size());
    const double y = YOf(panel.place(row.result));
    points += Format("%.1f,%.1f ", x, y);
    dots += Format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y,
                   kColours[index % std::size(kColours)]);
  }
  return Format("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" points=\"",
                kColours[index % std::size(kColours)], policy == kTurns ? 3 : 1) +
         points + "\"/>\n" + dots;
}

std::string Legend(const std::string& policy, size_t index) {
  const int x = kBatch.left + kPanelWidth + 24, y = kTop + 20 * static_cast<int>(index);
  return Format(
             "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"3\"/>\n",
             x, x + 24, y, y, kColours[index % std::size(kColours)]) +
         Text(x + 30, y + 4, "start", policy);
}

}  // namespace

std::string PictureOf(const std::vector<Row>& all_rows, const std::string& device) {
  std::vector<Row> rows;
  for (const Row& row : all_rows) {
    if (row.device == device) rows.push_back(row);
  }
  const std::vector<std::string> scenarios = NamesOf(rows, &Row::scenario),
                                 policies = NamesOf(rows, &Row::policy);
  std::string text = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  text += Text(kLeft, 24, "start",
               "An interactive job beside batch jobs on one " + device + " (simulated)");
  text += Axes(scenarios);
  for (size_t i = 0; i < policies.size(); ++i) {
    for (const Panel& panel : {kLatency, kBatch}) {
      if (policies[i] != kAlone || panel.has_alone)
        text += Line(panel, rows, policies[i], scenarios, i);
    }
    text += Legend(policies[i], i);
  }
  return text +
         Text(kLeft, kHeight - 20, "start",
              "jobs: the part of the device's memory that each needs, the interactive job "
              "first") +
         "</svg>\n";
}

}  // namespace spillway::seats
