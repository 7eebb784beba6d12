// Every subcommand with its options and operands, for shell completion. Built by each call from the
// parsers' tables and the help. One thread.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

enum class Need { kNever, kAlways, kMaybe };  // an option's value; kMaybe needs --name=VALUE

enum class Kind { kNothing, kText, kFile, kFolder, kWords, kJob, kProgram };

struct OptionWord {
  std::string name;  // without dashes
  char letter = 0;   // 0: none
  Need need = Need::kNever;
  std::string description;  // may be empty
  Kind value = Kind::kNothing;
  std::vector<std::string> words;  // for kWords
};

struct CommandWord {
  std::string name;
  std::string summary;
  std::vector<OptionWord> options;
  std::vector<std::string> verbs;  // allowed first operands; empty: any
  Kind operand = Kind::kNothing;   // of the other operands
};

std::vector<CommandWord> AllCommands();

}  // namespace spillway::cli
