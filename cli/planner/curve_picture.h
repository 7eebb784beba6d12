// Slow-down over budget, one line per strategy, as SVG.
//
// Pure: points in, text out.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

struct CurvePoint {
  int share_percent;  // of the peak
  double slow_down_percent;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // only budgets at which it runs
};

// Slow-downs above `most_percent` are left out: they would press everything else together.
std::string CurvesToSvg(const std::string& title, const std::vector<Curve>& curves,
                        double most_percent);

}  // namespace spillway::cli
