// `spillway`: chooses the subcommand, prints failures, decides the exit code.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/doctor.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/run_options.h"

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

int Dispatch(const std::vector<std::string>& arguments) {
  const std::string subcommand = arguments.empty() ? "" : arguments.front();
  if (subcommand == "run") return Run(arguments);
  if (subcommand == "doctor") return Doctor(arguments);
  if (subcommand == "--version" || subcommand == "version") return Print(VersionText());
  if (subcommand == "--help" || subcommand == "-h" || subcommand == "help") {
    return Print(HelpText(arguments.size() > 1 ? arguments[1] : ""));
  }
  if (subcommand.empty())
    throw Failure(kExitUsage, "nothing to do", "no subcommand was given", "see: spillway --help");
  throw Failure(kExitUsage, "no subcommand '" + subcommand + "'", "there are run, doctor and help",
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
