#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "agent/config/config_file.h"
#include "agent/config/config_json.h"
#include "agent/loop/agent.h"
#include "agent/loop/log.h"
#include "agent/loop/memory_reserve.h"
#include "agent/planning/plan_worker.h"
#include "agent/planning/timeline_worker.h"
#include "agent/pool/driver_worker.h"
#include "base/options/daemon_command_line.h"
#include "base/options/option_help.h"

namespace spillway::agent {
namespace {

using base::DaemonCommandLine;
using base::DaemonTask;

constexpr char kHelpBegin[] =
    R"(spillwayd - the node agent: shares a node's GPUs between jobs under Spillway

  spillwayd [--config FILE] [--socket PATH] [--log-format FORMAT]
  spillwayd --check | --show | --diff [--json] [--config FILE]

)";
constexpr char kHelpEnd[] = R"(
Signals: SIGHUP reads the configuration again, all of it or nothing; SIGUSR1 logs more; SIGUSR2 runs the installed program anew;
SIGTERM stops. Jobs keep what they have.
)";

int PrintHelp() {
  const std::string options = base::OptionsHelp(base::OptionsIn(base::kDaemonRows));
  std::fputs((kHelpBegin + options + kHelpEnd).c_str(), stdout);
  return 0;
}

base::Result<DaemonCommandLine> ReadCommandLine(int argc, char** argv) {
  DaemonCommandLine line;
  const auto operands = base::TakeOptions({argv, argv + argc}, base::kDaemonRows, line);
  if (!operands) return operands.status();
  if (line.log_format && *line.log_format != "text" && *line.log_format != "json")
    return base::Error{"cannot use --log-format=" + *line.log_format, "it is text or json"};
  if (operands->empty()) return line;
  return base::Error{"cannot use " + operands->front(), "spillwayd takes options only"};
}

AgentOptions OptionsOf(const DaemonCommandLine& line, char** argv) {
  AgentOptions options;
  options.arguments = argv;
  if (line.config) {
    options.config_path = *line.config;
    options.config_file = MainFile::kMustBeThere;
  }
  if (line.socket) options.socket = *line.socket;
  return options;
}

int PrintAsJson(DaemonTask task, const ConfigResult& result) {
  const bool is_valid = result.errors.empty();
  const std::string text = task == DaemonTask::kCheck || !is_valid ? CheckAsJson(result)
                           : task == DaemonTask::kShow             ? ShowAsJson(result.config)
                                                                   : DiffAsJson(result.config);
  std::fputs(text.c_str(), stdout);
  return is_valid ? 0 : 1;
}

int PrintConfig(DaemonTask task, const ConfigResult& result, const std::string& path) {
  if (task == DaemonTask::kShow) {
    std::fputs(ShowConfig(result.config).c_str(), stdout);
  } else if (task == DaemonTask::kDiff) {
    for (const std::string& line : DifferencesBetween(Config{}, result.config))
      std::puts(line.c_str());
  } else {
    for (const std::string& file : result.files) std::printf("%s: ok\n", file.c_str());
    if (result.files.empty())
      std::printf("%s is not there: everything is as by default\n", path.c_str());
  }
  return 0;
}

WorkerLimits LimitsIn(char** words) {
  return {std::strtoll(words[0], nullptr, 10), std::strtoll(words[1], nullptr, 10)};
}

int Main(int argc, char** argv) {
  // Started by the agent; not for users.
  if (argc == 4 && std::strcmp(argv[1], kPlanWorkerOption) == 0)
    return RunPlanWorker(LimitsIn(argv + 2));
  if (argc == 4 && std::strcmp(argv[1], kTimelineOption) == 0)
    return RunTimelineWorker(LimitsIn(argv + 2));
  if (argc == 2 && std::strcmp(argv[1], kSlabWorkerOption) == 0) return RunSlabWorker();
  const base::Result<DaemonCommandLine> line = ReadCommandLine(argc, argv);
  if (!line) {
    std::fprintf(stderr, "spillwayd: %s\nsee: spillwayd --help\n", line.text().c_str());
    return 2;
  }
  if (line->task == DaemonTask::kHelp) return PrintHelp();
  if (line->task == DaemonTask::kVersion) return std::puts("spillwayd " SPILLWAY_VERSION), 0;
  AgentOptions options = OptionsOf(*line, argv);
  const ConfigResult result = ReadConfigFiles(options.config_path, options.config_file);
  for (const std::string& error : result.errors) std::fprintf(stderr, "%s\n", error.c_str());
  if (line->json && line->task != DaemonTask::kServe) return PrintAsJson(line->task, result);
  if (!result.errors.empty()) return 1;
  if (line->task != DaemonTask::kServe) return PrintConfig(line->task, result, options.config_path);
  // If the file exists now, a reload that misses it is an error, not a request for the defaults.
  if (!result.files.empty() && result.files.front() == options.config_path)
    options.config_file = MainFile::kMustBeThere;
  const std::string format = line->log_format.value_or(result.config.log_format);
  StartLog(result.config.log_level, format == "json" ? LogFormat::kJson : LogFormat::kText);
  MemoryReserve::Install();
  return Agent(options, result.config).Run();
}

}  // namespace
}  // namespace spillway::agent

int main(int argc, char** argv) { return spillway::agent::Main(argc, argv); }
