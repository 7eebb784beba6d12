// The command line of `spillway run`, parsed and checked in itself; nothing here looks at the
// machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/size_text.h"
#include "cli/option_list.h"

namespace spillway::cli {

struct RunOptions {
  std::optional<base::Size> budget;  // none: the whole device
  std::optional<base::Size> host;    // always base::SizeKind::kBytes; none: the library's default
  std::optional<std::string> simulate;  // profile name or path; none: a real device
  std::string agent;                    // the agent's socket; empty: the environment's, or none
  bool requires_agent = false;          // no device memory but what the agent grants
  std::string call_sites;               // empty: not sampled; else one of how many allocations
  std::string report;                   // empty: no report
  std::string trace;                    // empty: no trace
  std::string strategy;                 // empty: the library's default
  bool learn = true;                    // false: memory moves only when it is needed
  std::string plan_store;               // a folder; empty: the user's own
  std::string park;                     // auto, host or off; empty: the library's default
  bool off = false;
  bool quiet = false;
  bool framework_switches = true;
  bool help = false;
  std::vector<std::string> command;  // program and arguments
};

// `arguments` starts with "run", as argv of a program of that name. Throws Failure (2).
RunOptions ParseRunOptions(const std::vector<std::string>& arguments);

OptionList RunOptionList();

inline constexpr char kDefaultProfile[] = "h200";

}  // namespace spillway::cli
