// The administrator's rules for every `spillway run`, in /etc/spillway/run.toml:
//
//   agent = "required"                    # or "optional", the default
//   socket = "/run/spillway/agent.sock"   # then the only agent for jobs
//
// The command line may ask for more than the rules, never less.
//
// Invariants
//  1. A file that cannot be read or understood is a Failure (125): no job runs by half a rule.
#pragma once

#include <string>
#include <string_view>

#include "cli/run_options.h"

namespace spillway::cli {

inline constexpr char kRunRulesPath[] = "/etc/spillway/run.toml";

struct RunRules {
  bool agent_is_required = false;
  std::string socket;  // empty: the agents' default
};

RunRules ParseRunRules(std::string_view text, const std::string& path);
RunRules ReadRunRules(const std::string& path);

// Throws Failure (125) for options that would evade the rules.
RunOptions UnderRules(RunOptions options, const RunRules& rules, const std::string& path);

}  // namespace spillway::cli
