// `spillway_option_manual COMMAND`: prints a command's options in mdoc(7), for tools/manual.py.
#include <cstdio>

#include "cli/command_list.h"
#include "cli/options/option_manual.h"

int main(int argc, char** argv) {
  std::vector<spillway::cli::Command> commands = spillway::cli::AllCommands();
  commands.push_back(spillway::cli::DaemonCommand());
  for (const spillway::cli::Command& command : commands) {
    if (argc != 2 || command.name != argv[1] || command.options.empty()) continue;
    return std::fputs(spillway::cli::OptionsManual(command.options).c_str(), stdout) < 0 ? 1 : 0;
  }
  std::fputs("usage: spillway_option_manual COMMAND, of a command with options\n", stderr);
  return 2;
}
