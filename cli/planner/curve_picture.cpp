#include "cli/planner/curve_picture.h"

#include <cstdio>

namespace spillway::cli {
namespace {

constexpr int kWidth = 1100, kHeight = 620, kLeft = 70, kRight = 260, kTop = 50, kBottom = 60;
constexpr int kFirstShare = 20, kLastShare = 100;
constexpr const char* kColours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b",
                                    "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};
constexpr const char* kDashes[] = {"", "6 3", "2 2"};

std::string Format(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double X(int share_percent) {
  return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(share_percent - kFirstShare) /
                     (kLastShare - kFirstShare);
}

double Y(double slow_down_percent, double most_percent) {
  return kTop + (kHeight - kTop - kBottom) * (1 - slow_down_percent / most_percent);
}

std::string Axes(double most_percent) {
  std::string text;
  for (int share = kFirstShare; share <= kLastShare; share += 10) {
    text += Format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#eee\"/>\n",
                   X(share), X(share), kTop, kHeight - kBottom);
    text += Format("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n", X(share),
                   kHeight - kBottom + 18, share);
  }
  for (int tick = 0; tick <= 5; ++tick) {
    const double percent = most_percent * tick / 5;
    text += Format("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#eee\"/>\n", kLeft,
                   kWidth - kRight, Y(percent, most_percent), Y(percent, most_percent));
    text += Format("<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f %%</text>\n", kLeft - 6,
                   Y(percent, most_percent) + 4, percent);
  }
  return text +
         Format(
             "<text x=\"%d\" y=\"%d\">budget as a share of the peak; slower than with unlimited "
             "memory</text>\n",
             kLeft, kHeight - 16);
}

std::string Line(const Curve& curve, size_t index, double most_percent) {
  const bool is_bound = index == 0, is_own = curve.name == "spillway";
  const char* colour = is_bound ? "#000"
                       : is_own ? "#d62728"
                                : kColours[index % std::size(kColours)];
  const char* dash = is_bound ? "1 4"
                     : is_own ? ""
                              : kDashes[index / std::size(kColours) % std::size(kDashes)];
  std::string points;
  for (const CurvePoint& point : curve.points) {
    if (point.slow_down_percent <= most_percent)
      points +=
          Format("%.1f,%.1f ", X(point.share_percent), Y(point.slow_down_percent, most_percent));
  }
  const int legend_y = kTop + 18 * static_cast<int>(index);
  return Format(
             "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" stroke-dasharray=\"%s\" "
             "points=\"",
             colour, is_own ? 3 : 1, dash) +
         points + "\"/>\n" +
         Format(
             "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"%d\" "
             "stroke-dasharray=\"%s\"/>\n",
             kWidth - kRight + 20, kWidth - kRight + 50, legend_y, legend_y, colour, is_own ? 3 : 1,
             dash) +
         Format("<text x=\"%d\" y=\"%d\">", kWidth - kRight + 56, legend_y + 4) + curve.name +
         (curve.points.empty() ? " (never runs)" : "") + "</text>\n";
}

}  // namespace

std::string CurvesToSvg(const std::string& title, const std::vector<Curve>& curves,
                        double most_percent) {
  std::string text = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  text += Format("<text x=\"%d\" y=\"24\">", kLeft) + title + "</text>\n" + Axes(most_percent);
  for (size_t i = 0; i < curves.size(); ++i) text += Line(curves[i], i, most_percent);
  return text + "</svg>\n";
}

}  // namespace spillway::cli
