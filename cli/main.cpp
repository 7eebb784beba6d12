#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/agent_commands.h"
#include "cli/cdi_command.h"
#include "cli/command_list.h"
#include "cli/completion/completion.h"
#include "cli/doctor.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/installation.h"
#include "cli/launch.h"
#include "cli/options/planner_options.h"
#include "cli/run_options.h"
#include "cli/top.h"

namespace spillway::cli {
namespace {

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Run(const std::vector<std::string>& arguments) {
  const RunOptions options = ParseRunOptions(arguments);
  if (options.help) return Print(HelpText("run"));
  Execute(PrepareLaunch(options));
}

// A separate executable, as it needs libraries that a GPU node may lack.
int BecomePlanner(const std::vector<std::string>& arguments) {
  const std::string planner = FindInstallation().executable + "-plan";
  std::vector<char*> argv = {const_cast<char*>("spillway")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(planner.c_str(), argv.data());
  throw Failure(kExitCannotExecute, "cannot run " + planner, std::strerror(errno),
                "build it: it needs libflatbuffers-dev, flatbuffers-compiler, libcli11-dev and "
                "nlohmann-json3-dev");
}

bool IsPlannersOwn(const std::string& subcommand) { return !PlannerOptionList(subcommand).empty(); }

int Dispatch(const std::vector<std::string>& arguments) {
  const std::string subcommand = arguments.empty() ? "" : arguments.front();
  if (subcommand == "run") return Run(arguments);
  if (subcommand == "doctor") return Doctor(arguments);
  if (subcommand == "cdi") return RunCdi(arguments);
  if (IsPlannersOwn(subcommand)) return BecomePlanner(arguments);
  if (subcommand == "top") return RunTop(arguments);
  if (IsAgentCommand(subcommand)) return RunAgentCommand(arguments);
  if (subcommand == "completion") return Print(CompletionScript(arguments));
  if (subcommand == "--version" || subcommand == "version") return Print(VersionText());
  if (subcommand == "--help" || subcommand == "-h" || subcommand == "help") {
    if (arguments.size() > 1 && IsPlannersOwn(arguments[1]))
      return BecomePlanner({arguments[1], "--help"});
    return Print(HelpText(arguments.size() > 1 ? arguments[1] : ""));
  }
  if (subcommand.empty())
    throw Failure(kExitUsage, "nothing to do", "no subcommand was given", "see: spillway --help");
  throw Failure(kExitUsage, "no subcommand '" + subcommand + "'", "there are " + ListedCommands(),
                "see: spillway --help; to run a program: spillway run -- " + subcommand);
}

}  // namespace
}  // namespace spillway::cli

int main(int argc, char** argv) {
  try {
    return spillway::cli::Dispatch({argv + 1, argv + argc});
  } catch (const spillway::cli::Failure& failure) {
    std::fputs(failure.text().c_str(), stderr);
    return failure.exit_code();
  }
}
