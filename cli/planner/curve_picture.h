// Draws slow-down over budget as SVG, one line per strategy.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

struct CurvePoint {
  int share_percent;
  double slow_down_percent;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // only budgets at which it runs
};

// Slow-downs above `most_percent` would squeeze the others.
std::string CurvesToSvg(const std::string& title, const std::vector<Curve>& curves,
                        double most_percent);

}  // namespace spillway::cli
