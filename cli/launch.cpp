#include "cli/launch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/environment.h"
#include "base/terminal.h"
#include "base/wrapped_lines.h"
#include "cli/accelerator_probe.h"
#include "cli/agent_client.h"
#include "cli/agent_requirement.h"
#include "cli/command_target.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/frameworks.h"
#include "cli/installation.h"
#include "cli/launch_checks.h"
#include "cli/own_budget.h"
#include "cli/peak_store.h"
#include "cli/run_rules.h"
#include "cli/shell_quote.h"
#include "cli/younger_driver.h"

namespace spillway::cli {
namespace {

struct Machine {
  AcceleratorFacts accelerator;
  std::string peak_profile;  // separates peaks of different devices
};

Machine SimulatedMachine(const Installation& installation, const std::string& profile,
                         EnvironmentChanges& environment) {
  CheckSimulator(installation, profile);
  const std::string driver = installation.simulator_folder + "/libcuda.so.1";
  environment.Set(environment::kSimProfile,
                  profile.find('/') == std::string::npos ? profile : AbsolutePath(profile));
  environment.Prepend("LD_LIBRARY_PATH", installation.simulator_folder, ':');
  EnvironmentChanges probe_environment = environment;
  probe_environment.Unset(environment::kSimStats);  // belong to the job
  probe_environment.Unset(environment::kSimNode);
  AcceleratorFacts accelerator = ProbeAccelerator(driver, probe_environment);
  return {.accelerator = std::move(accelerator), .peak_profile = "simulated " + profile};
}

Machine RealMachine(const EnvironmentChanges& environment) {
  const std::string chosen = EnvironmentValue(environment::kDriver);
  AcceleratorFacts accelerator =
      ProbeAccelerator(chosen.empty() ? "libcuda.so.1" : chosen, environment);
  const std::string name = accelerator.device_name;
  return {.accelerator = std::move(accelerator), .peak_profile = name};
}

base::Result<std::string> PreparePeakFile(const Launch& launch, const std::string& profile) {
  const std::optional<std::string> folder = PeakFolder();
  if (!folder) return base::Error{"neither HOME nor XDG_STATE_HOME is set"};
  if (base::Status made = MakePrivateFolders(*folder); !made.ok()) return made;
  const std::vector<std::string> arguments(launch.arguments.begin() + 1, launch.arguments.end());
  const std::string program = ResolvedPath(launch.program_path).value_or(launch.program_path);
  return *folder + "/" + PeakKey(program, arguments, profile);
}

base::Result<std::string> PreparePlanStore(const RunOptions& options) {
  if (!options.learn) return std::string();
  const std::optional<std::string> folder =
      options.plan_store.empty() ? StateFolder("plans") : AbsolutePath(options.plan_store);
  if (!folder) return std::string();
  if (base::Status made = MakePrivateFolders(*folder); !made.ok()) return made;
  return *folder;
}

std::string MeasureCommand(const RunOptions& options) {
  std::string text = "spillway run";
  if (options.simulate) text += " --simulate=" + ShellQuoted(*options.simulate);
  if (!options.framework_env) text += " --no-framework-env";
  text += " --";
  for (const std::string& word : options.command) text += " " + ShellQuoted(word);
  return text;
}

void AddNote(Launch& launch, const std::string& kind, const std::string& text) {
  if (!text.empty()) launch.notes += "spillway: " + kind + text + "\n";
}

// A log keeps each note on one line, for searches.
std::string FittedToTerminal(const std::string& notes) {
  return base::WrappedLines(notes, base::TerminalColumns(STDERR_FILENO), "  ",
                            base::LongWords::kKeep);
}

// An error gives "" and a warning that names the consequence.
std::string ValueOrWarning(base::Result<std::string> made, const std::string& consequence,
                           Launch& launch) {
  if (!made) AddNote(launch, "warning: ", made.text() + ": " + consequence);
  return std::move(made).value_or("");
}

std::uint64_t DecideBudget(const RunOptions& options, const Machine& machine,
                           const std::string& peak_file, Launch& launch) {
  if (!options.budget) return 0;
  std::string warning;
  const std::uint64_t peak_bytes = peak_file.empty() ? 0 : ReadPeakBytes(peak_file).value_or(0);
  const std::uint64_t budget_bytes =
      DecideBudgetBytes({.size = *options.budget,
                         .device_bytes = machine.accelerator.device_bytes,
                         .peak_bytes = peak_bytes,
                         .measure_command = MeasureCommand(options)},
                        warning);
  AddNote(launch, "warning: ", warning);
  return budget_bytes;
}

// Empty: none.
std::string AgentToFollow(const RunOptions& options) {
  return options.agent.empty() ? EnvironmentValue(environment::kAgent) : options.agent;
}

std::string DescribeStart(const RunOptions& options, const Machine& machine,
                          const std::string& library, const OwnBudget& own) {
  const AcceleratorFacts& device = machine.accelerator;
  const std::string agent = AgentToFollow(options);
  std::string text =
      agent.empty() ? DescribeBudget(own) : "the agent at " + agent + " sets the budget";
  if (!agent.empty()) text += DescribeOwnLimit(own);
  if (options.requires_agent) text += ", and is required";
  text += " on " + device.device_name;
  if (options.simulate) text += " [simulated]";
  text += " with " + base::FormatBytes(device.device_bytes);
  if (device.device_count > 1)
    text += ", first of " + std::to_string(device.device_count) + " devices";
  return text + "; preloading " + library;
}

// A caller's values must not reach the job.
void ForgetOldSettings(EnvironmentChanges& environment) {
  for (const char* name :
       {environment::kBudget, environment::kHostLimit, environment::kPark, environment::kLearn,
        environment::kStrategy, environment::kPlanStore, environment::kReport, environment::kTrace,
        environment::kEvents, environment::kPeakFile, environment::kCallSites,
        environment::kProgress, environment::kSummary, environment::kJobPid}) {
    environment.Unset(name);
  }
}

// LD_PRELOAD cannot hold a path with a space or colon: then the loader reports the missing symbols.
std::string PreloadDriverIfNeeded(const LoadedProgram& program, const std::string& driver,
                                  const Installation& installation,
                                  EnvironmentChanges& environment) {
  const std::string& library = installation.preload_library;
  const auto needed =
      NeededAtStart(program, UnknownFunctions(driver, library), library, environment);
  if (needed.empty() || driver.find_first_of(" :") != std::string::npos) return "";
  environment.Prepend("LD_PRELOAD", driver, ':');
  return "the program needs " + Listed(needed) +
         " of a driver that is younger than Spillway; these calls pass through uncounted";
}

// The job may change its folder. "@name" is abstract, without a file.
std::string AbsoluteAddress(const std::string& address) {
  return address.front() == '@' ? address : AbsolutePath(address);
}

void PrepareOff(const RunOptions& options, const Installation& installation, Launch& launch) {
  if (options.simulate) {
    const Machine machine = SimulatedMachine(installation, *options.simulate, launch.environment);
    CheckAccelerator(machine.accelerator);
  }
  if (!options.quiet) AddNote(launch, "", "off: running the command without Spillway");
}

void PrepareOn(const RunOptions& options, const Installation& installation, Launch& launch) {
  const LoadedProgram program = CheckPreloadable(launch.program_path, CurrentIdentity());
  CheckPreloadLibrary(installation);
  EnvironmentChanges& environment = launch.environment;
  const Machine machine = options.simulate
                              ? SimulatedMachine(installation, *options.simulate, environment)
                              : RealMachine(environment);
  CheckAccelerator(machine.accelerator);
  const std::string peak_file =
      ValueOrWarning(PreparePeakFile(launch, machine.peak_profile),
                     "this command's peak will not be remembered", launch);
  const std::string plan_store =
      ValueOrWarning(PreparePlanStore(options), "plans will not be kept", launch);
  const std::uint64_t budget_bytes = DecideBudget(options, machine, peak_file, launch);
  const OwnBudget own_budget =
      DecideOwnBudget(options.budget, budget_bytes, machine.accelerator.device_uuids,
                      machine.accelerator.device_count);
  AddNote(launch, "warning: ", own_budget.warning);
  if (options.budget) environment.Set(environment::kBudget, std::to_string(budget_bytes));
  if (options.host) environment.Set(environment::kHostLimit, std::to_string(options.host->bytes));
  if (!options.agent.empty()) environment.Set(environment::kAgent, AbsoluteAddress(options.agent));
  if (options.requires_agent) {
    environment.Set(environment::kAgentRequired, "1");
    CheckAgentTakes(options.agent, machine.accelerator.device_uuids);
  }
  if (!options.park.empty()) environment.Set(environment::kPark, options.park);
  if (!options.workspace.empty()) environment.Set(environment::kWorkspace, options.workspace);
  if (!options.learn) environment.Set(environment::kLearn, "off");
  if (options.lends_pools) environment.Set(environment::kLendPools, "1");
  if (!options.repeats_kernels) environment.Set(environment::kExperiments, "0");
  if (!options.strategy.empty()) environment.Set(environment::kStrategy, options.strategy);
  if (!plan_store.empty()) environment.Set(environment::kPlanStore, plan_store);
  if (!options.report.empty())
    environment.Set(environment::kReport, ClearFile(options.report, "report"));
  if (!options.trace.empty())
    environment.Set(environment::kTrace, ClearFile(options.trace, "trace"));
  if (!options.call_sites.empty()) environment.Set(environment::kCallSites, options.call_sites);
  if (!peak_file.empty()) environment.Set(environment::kPeakFile, peak_file);
  environment.Set(environment::kDriver, machine.accelerator.driver_path);
  environment.Set(environment::kJobPid, std::to_string(getpid()));
  const std::string younger =
      PreloadDriverIfNeeded(program, machine.accelerator.driver_path, installation, environment);
  environment.Prepend("LD_PRELOAD", installation.preload_library, ':');
  if (options.framework_env) SwitchFrameworks(environment);
  if (options.quiet) return;
  environment.Set(environment::kSummary, "1");
  if (isatty(STDERR_FILENO) != 0) environment.Set(environment::kProgress, "1");
  AddNote(launch, "", younger);
  if (const std::optional<std::string> version = PyTorchVersion(launch.program_path))
    AddNote(launch, "", DescribePyTorch(*version, options.framework_env));
  AddNote(launch, "", DescribeStart(options, machine, installation.preload_library, own_budget));
}

// The environment's author, such as a prolog, may require the agent.
RunOptions WithEnvironmentRequirements(RunOptions options) {
  if (options.off || EnvironmentValue(environment::kAgentRequired) != "1") return options;
  options.requires_agent = true;
  options.agent = AgentToFollow(options);
  if (options.agent.empty()) options.agent = AgentAddress("");
  return options;
}

}  // namespace

Launch PrepareLaunch(const RunOptions& written) {
  CheckNotNested();
  const RunOptions options =
      WithEnvironmentRequirements(UnderRules(written, ReadRunRules(kRunRulesPath), kRunRulesPath));
  const Installation installation = FindInstallation();
  Launch launch;
  launch.program_path = FindCommand(options.command.front());
  launch.arguments = options.command;
  ForgetOldSettings(launch.environment);
  if (options.off) {
    PrepareOff(options, installation, launch);
  } else {
    PrepareOn(options, installation, launch);
  }
  return launch;
}

void Execute(const Launch& launch) {
  std::vector<std::string> copies = launch.arguments;
  std::vector<char*> argv;
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  std::fputs(FittedToTerminal(launch.notes).c_str(), stderr);
  std::fflush(stderr);
  launch.environment.Apply();
  execv(launch.program_path.c_str(), argv.data());
  const int exit_code = errno == ENOENT ? kExitCommandNotFound : kExitCannotExecute;
  throw Failure(exit_code, "cannot execute " + launch.program_path, std::strerror(errno),
                "check the file, its interpreter and the limits of this session (ulimit -a)");
}

}  // namespace spillway::cli
