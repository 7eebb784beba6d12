// What the administrator of this machine has fixed for every `spillway run`, in
// /etc/spillway/run.toml:
//
//   agent = "required"                    # or "optional", the default
//   socket = "/run/spillway/agent.sock"   # of the only agent that jobs may follow then
//
// Read once before a launch; one thread. The command line's options may ask for more than the
// rules, never for less.
//
// Invariants
//  1. A file that is there and cannot be read, or is not understood, is a Failure (125): nobody
//  runs by half a rule.
#pragma once

#include <string>
#include <string_view>

#include "cli/run_options.h"

namespace spillway::cli {

inline constexpr char kRunRulesPath[] = "/etc/spillway/run.toml";

struct RunRules {
  bool agent_is_required = false;
  std::string socket;  // empty: where agents are by default
};

// `path` is for the messages.
RunRules ParseRunRules(std::string_view text, const std::string& path);
// The defaults where there is no such file.
RunRules ReadRunRules(const std::string& path);

// The options as the rules leave them; throws Failure (125) for those that would evade them.
RunOptions UnderRules(RunOptions options, const RunRules& rules, const std::string& path);

}  // namespace spillway::cli
