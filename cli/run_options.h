// Parses the command line of `spillway run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/size_text.h"
#include "cli/options/option.h"

namespace spillway::cli {

struct RunOptions {
  std::optional<base::Size> budget;     // nullopt: the whole device
  std::optional<base::Size> host;       // nullopt: the library's default
  std::optional<std::string> simulate;  // profile name or path; nullopt: a real device
  std::string agent;                    // empty: from the environment, or none
  bool requires_agent = false;
  std::string call_sites;  // samples one of so many allocations; empty: none
  std::string report;
  std::string trace;
  std::string strategy;  // empty: the library's default
  bool learn = true;     // false: memory moves only on demand
  bool lends_pools = false;
  bool repeats_kernels = true;  // kernels may run more often than the program says
  std::string plan_store;       // a folder; empty: the user's own
  std::string park;             // auto, host or off; empty: the library's default
  std::string workspace;        // fit or as-bare; empty: the library's default
  bool off = false;
  bool quiet = false;
  bool framework_env = true;
  bool help = false;
  std::vector<std::string> command;
};

// `arguments` start with "run". Throws Failure (2).
RunOptions ParseRunOptions(const std::vector<std::string>& arguments);

std::vector<Option> RunOptionList();

inline constexpr char kDefaultProfile[] = "h200";

}  // namespace spillway::cli
