// `spillway plan`: what strategies make of a profile at a budget.
//
// One thread; prints to stdout, throws Failure. Exit code 0 when the plan that was asked for runs
// within the budget and passed the validator, 1 when it does not.
#pragma once

#include <string>

#include "scheduler/plan/cost_model.h"

namespace spillway::cli {

struct PlanOptions {
  std::string source;
  std::string budget = "50%peak";
  std::string strategy;  // empty: Spillway's own; "all": every one, compared
  std::string device = "h200";
  std::string chunk = "2MiB";
  int link_percent = 100;
  uint64_t seed = 1;
  bool repair = false;  // what a strategy's rule leaves over the budget is put right
  bool place = false;   // buffers get addresses
  bool explain = false;
  bool json = false;
  std::string svg_path;
  std::string perfetto_path;
  std::string curve_path;
};

int RunPlanCommand(const PlanOptions& options);

inline constexpr int64_t kSlabUnitBytes = 512;  // what small buffers are rounded to

// `--chunk`; throws Failure for what is no number of bytes.
int64_t ParseChunk(const std::string& written);

// The numbers of `--budget`: bytes, a share of the device, a share of the profile's peak.
int64_t ResolveBudget(const std::string& written, int64_t capacity_bytes, int64_t peak_bytes);

}  // namespace spillway::cli
