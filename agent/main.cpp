// `spillwayd`: reads the command line and the configuration, then runs the agent.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "agent/config/config_file.h"
#include "agent/config/config_json.h"
#include "agent/loop/agent.h"
#include "agent/loop/log.h"
#include "agent/loop/memory_reserve.h"
#include "agent/planning/plan_worker.h"
#include "agent/pool/driver_worker.h"

namespace spillway::agent {
namespace {

constexpr char kHelp[] =
    R"(spillwayd - the node agent: shares a node's GPUs between jobs under Spillway

  spillwayd [--config FILE] [--socket PATH]
  spillwayd --check | --show | --diff [--json] [--config FILE]

  --config FILE   default /etc/spillway/spillway.toml; drop-ins are read from spillway.d beside it
  --socket PATH   instead of the configuration's
  --check         say what is wrong with the configuration; exit code 1 when something is
  --show          print the whole configuration, with what nobody has set
  --diff          print what differs from the defaults
  --json          any of these for scripts
  --version

Signals: SIGHUP reads the configuration again, all of it or nothing; SIGUSR1 logs more; SIGUSR2 runs the installed program anew;
SIGTERM stops. Jobs keep what they have.
)";

enum class Wish { kServe, kCheck, kShow, kDiff, kHelp, kVersion, kNothing };

Wish ReadCommandLine(int argc, char** argv, AgentOptions* options, bool* json) {
  const option known[] = {{"config", required_argument, nullptr, 'c'},
                          {"socket", required_argument, nullptr, 's'},
                          {"check", no_argument, nullptr, 'k'},
                          {"show", no_argument, nullptr, 'w'},
                          {"diff", no_argument, nullptr, 'd'},
                          {"help", no_argument, nullptr, 'h'},
                          {"json", no_argument, nullptr, 'j'},
                          {"version", no_argument, nullptr, 'v'},
                          {}};
  Wish wish = Wish::kServe;
  for (int letter; (letter = getopt_long(argc, argv, "c:s:h", known, nullptr)) != -1;) {
    switch (letter) {
      case 'c':
        options->config_path = optarg;
        options->config_file = MainFile::kMustBeThere;
        break;
      case 's':
        options->socket = optarg;
        break;
      case 'k':
        wish = Wish::kCheck;
        break;
      case 'w':
        wish = Wish::kShow;
        break;
      case 'd':
        wish = Wish::kDiff;
        break;
      case 'j':
        *json = true;
        break;
      case 'h':
        wish = Wish::kHelp;
        break;
      case 'v':
        wish = Wish::kVersion;
        break;
      default:
        return Wish::kNothing;
    }
  }
  return optind == argc ? wish : Wish::kNothing;
}

int TellAsJson(Wish wish, const ConfigResult& result) {
  const bool is_valid = result.errors.empty();
  const std::string text = wish == Wish::kCheck || !is_valid ? CheckAsJson(result)
                           : wish == Wish::kShow             ? ShowAsJson(result.config)
                                                             : DiffAsJson(result.config);
  std::fputs(text.c_str(), stdout);
  return is_valid ? 0 : 1;
}

int Tell(Wish wish, const ConfigResult& result, const std::string& path) {
  if (wish == Wish::kShow) {
    std::fputs(ShowConfig(result.config).c_str(), stdout);
  } else if (wish == Wish::kDiff) {
    for (const std::string& line : DifferencesBetween(Config{}, result.config))
      std::puts(line.c_str());
  } else {
    for (const std::string& file : result.files) std::printf("%s: ok\n", file.c_str());
    if (result.files.empty())
      std::printf("%s is not there: everything is as by default\n", path.c_str());
  }
  return 0;
}

// Started by the plan desk; not for users.
int PlanWorker(char** limits) {
  return RunPlanWorker(
      {std::strtoll(limits[0], nullptr, 10), std::strtoll(limits[1], nullptr, 10)});
}

int Main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], kPlanWorkerOption) == 0) return PlanWorker(argv + 2);
  if (argc == 2 && std::strcmp(argv[1], kSlabWorkerOption) == 0) return RunSlabWorker();
  AgentOptions options;
  options.arguments = argv;
  bool json = false;
  const Wish wish = ReadCommandLine(argc, argv, &options, &json);
  if (wish == Wish::kHelp) return std::fputs(kHelp, stdout), 0;
  if (wish == Wish::kVersion) return std::puts("spillwayd " SPILLWAY_VERSION), 0;
  if (wish == Wish::kNothing) return std::fputs("see: spillwayd --help\n", stderr), 2;
  const ConfigResult result = ReadConfigFiles(options.config_path, options.config_file);
  for (const std::string& error : result.errors) std::fprintf(stderr, "%s\n", error.c_str());
  if (json && wish != Wish::kServe) return TellAsJson(wish, result);
  if (!result.errors.empty()) return 1;
  if (wish != Wish::kServe) return Tell(wish, result, options.config_path);
  // If the file exists now, a reload that misses it is an error, not a request for the defaults.
  if (!result.files.empty() && result.files.front() == options.config_path)
    options.config_file = MainFile::kMustBeThere;
  StartLog(result.config.log_level);
  MemoryReserve::Install();
  return Agent(options, result.config).Run();
}

}  // namespace
}  // namespace spillway::agent

int main(int argc, char** argv) { return spillway::agent::Main(argc, argv); }
