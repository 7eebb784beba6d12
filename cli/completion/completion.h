// `spillway completion SHELL`: prints a completion script, which asks the agent for job names only.
#pragma once

#include <string>
#include <vector>

#include "cli/command_list.h"

namespace spillway::cli {

// `arguments` start with "completion". Throws Failure (2).
std::string CompletionScript(const std::vector<std::string>& arguments);

std::string BashCompletion(const std::vector<Command>& commands, const Command& daemon);
std::string ZshCompletion(const std::vector<Command>& commands, const Command& daemon);
std::string FishCompletion(const std::vector<Command>& commands, const Command& daemon);

inline constexpr char kListJobs[] =
    R"SHELL(spillway jobs --json 2>/dev/null | sed -n 's/.*"job": *"\([^"]*\)".*/\1/p')SHELL";

}  // namespace spillway::cli
