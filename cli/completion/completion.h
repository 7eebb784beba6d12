// `spillway completion SHELL`: a script that teaches a shell the command's words.
//
// The scripts ask the node agent for names of jobs, and nothing else. One thread.
#pragma once

#include <string>
#include <vector>

#include "cli/completion/command_list.h"

namespace spillway::cli {

// `arguments` start with "completion". The text to print; throws Failure (2).
std::string CompletionScript(const std::vector<std::string>& arguments);

std::string BashCompletion(const std::vector<CommandWord>& commands);
std::string ZshCompletion(const std::vector<CommandWord>& commands);
std::string FishCompletion(const std::vector<CommandWord>& commands);

// The parts that shells have in common.
std::string Joined(const std::vector<std::string>& words);  // by spaces

// Prints the names of the node's jobs, a line each; nothing without an agent.
inline constexpr char kListJobs[] =
    R"SHELL(spillway jobs --json 2>/dev/null | sed -n 's/.*"job": *"\([^"]*\)".*/\1/p')SHELL";

}  // namespace spillway::cli
