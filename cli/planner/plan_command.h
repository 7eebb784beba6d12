// `spillway plan`: the plans of strategies for a profile at a budget. Exit code 0: the chosen plan
// runs and passed the validator. Otherwise 1.
#pragma once

#include <string>

#include "scheduler/plan/cost_model.h"

namespace spillway::cli {

struct PlanOptions {
  std::string source;
  std::string budget = "50%peak";
  std::string strategy;  // empty: Spillway's own; "all": compares all
  std::string device = "h200";
  std::string chunk = "2MiB";
  int link_percent = 100;
  uint64_t seed = 1;
  bool repair = false;  // brings a strategy's plan within the budget
  bool place = false;
  bool explain = false;
  bool json = false;
  std::string svg_path;
  std::string perfetto_path;
  std::string curve_path;
};

int RunPlanCommand(const PlanOptions& options);

inline constexpr int64_t kSlabUnitBytes = 512;  // small buffers are rounded up to it

int64_t ParseChunk(const std::string& written);

int64_t ResolveBudget(const std::string& written, int64_t capacity_bytes, int64_t peak_bytes);

}  // namespace spillway::cli
