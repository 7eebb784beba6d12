// The launcher's settings, read once from the job's environment (job_environment.h).
//
// The process's one Config lives until the process ends, so that code at exit may read it.
// Invariants
//  1. A value that does not parse counts as unset and is named in `problems`. External limits are
//     named there only if the launcher set no budget.
// Never: sets a variable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/external_limits.h"
#include "base/function_ref.h"

#include "interposer/config/learn_choice.h"
#include "interposer/config/park_choice.h"
#include "interposer/config/workspace_choice.h"

namespace spillway::interposer {

struct Config {
  std::optional<uint64_t> budget_bytes;  // of each device; unset: external limits, or all of it
  base::ExternalLimits external_limits;
  std::string budget_schedule;               // for tests (lease/budget_schedule.h)
  std::optional<uint64_t> host_limit_bytes;  // unset: 80 % of the free host memory
  ParkChoice park = ParkChoice::kAuto;
  WorkspaceChoice workspace = WorkspaceChoice::kFit;
  std::optional<size_t> workspace_limit_bytes;  // of one workspace, beside kFit
  LearnChoice learn = LearnChoice::kAuto;
  bool drops_eagerly = false;   // for tests
  bool repeats_kernels = true;  // also those that no library documents
  bool lends_pools = false;     // runs of the program's own mappings leave while the job is idle
  std::string strategy;         // empty: the scheduler's default
  std::string plan_store_path;  // empty: plans are not kept
  std::string report_path;      // empty: no report
  std::string trace_path;       // empty: no trace
  std::string events_path;      // for tests; empty: events are not written
  std::string agent;            // the node agent's socket; empty: none
  bool agent_required = false;
  std::string peak_path;                     // empty: the peak is not remembered
  std::optional<uint64_t> call_sites_every;  // unset: call sites are not sampled
  bool shows_progress = false;
  bool shows_summary = false;
  std::optional<int> job_pid;
  std::vector<std::string> problems;
};

using Environment = base::FunctionRef<const char*(const char* name)>;

Config ReadConfig(Environment environment);

const Config& ProcessConfig();

}  // namespace spillway::interposer
