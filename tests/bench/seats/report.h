// Rows as a table, as JSON and as a picture, and the verdict on the goal of turns.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/seats/experiment.h"

namespace spillway::seats {

std::string TableOf(const std::vector<Row>& rows);
std::string JsonOf(const std::vector<Row>& rows);
// The rows of one device: latency and batch steps, a line per policy over the scenarios.
std::string PictureOf(const std::vector<Row>& rows, const std::string& device);

// Against first come, 30 s: at least so many times better in the 95th percentile, and batch steps
// within so much.
inline constexpr double kLeastBetter = 3, kMostBatchLoss = 0.1;
struct Verdict {
  std::string text;  // a line per device
  bool is_met = true;
};
Verdict JudgeGoal(const std::vector<Row>& rows);

}  // namespace spillway::seats
