// Every subcommand with its options and operands, for help, completions, manual pages and messages.
#pragma once

#include <string>
#include <vector>

#include "cli/options/option.h"

namespace spillway::cli {

struct Command {
  std::string name;
  std::string summary;
  std::vector<Option> options;
  std::vector<std::string> verbs;  // allowed first operands; empty: any
  Kind operand = Kind::kNothing;
};

std::vector<Command> AllCommands();
Command DaemonCommand();  // `spillwayd`, which is no subcommand

std::vector<std::string> HelpTopics();

// "run, doctor and help".
std::string Listed(const std::vector<std::string>& words);
std::string ListedCommands();

}  // namespace spillway::cli
