// Every subcommand with its options and operands, as shells complete them.
//
// Made anew by each call, from the tables that the parsers use and the descriptions in the help.
// One thread.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

enum class Need { kNever, kAlways, kMaybe };  // an option's value; kMaybe is written --name=VALUE

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
  std::vector<std::string> verbs;  // words of which the first operand is one; empty: no such word
  Kind operand = Kind::kNothing;   // of the operands that follow
};

std::vector<CommandWord> AllCommands();

}  // namespace spillway::cli
