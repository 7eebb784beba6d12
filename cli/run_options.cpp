#include "cli/run_options.h"

#include "cli/agent_client.h"
#include "cli/failure.h"
#include "cli/option_list.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {
namespace {

constexpr option kRunOptions[] = {
    {"budget", required_argument, nullptr, 'b'},
    {"host", required_argument, nullptr, 'H'},
    {"simulate", optional_argument, nullptr, 's'},
    {"report", required_argument, nullptr, 'r'},
    {"trace", required_argument, nullptr, 't'},
    {"park", required_argument, nullptr, 'p'},
    {"strategy", required_argument, nullptr, 'S'},
    {"no-learn", no_argument, nullptr, 'L'},
    {"plan-store", required_argument, nullptr, 'P'},
    {"off", no_argument, nullptr, 'o'},
    {"quiet", no_argument, nullptr, 'q'},
    {"no-framework-switches", no_argument, nullptr, 'n'},
    {"help", no_argument, nullptr, 'h'},
    {"call-sites", optional_argument, nullptr, 'c'},
    {"agent", optional_argument, nullptr, 'a'},
    {"require-agent", no_argument, nullptr, 'A'},
    {},
};

base::Size ParseSizeOption(const std::string& option_name, const std::string& value) {
  const std::optional<base::Size> size = base::ParseSize(value);
  if (!size) {
    throw Failure(
        kExitUsage, option_name + " cannot be '" + value + "'", "that is no size",
        "write bytes with a unit (8GiB, 8192MiB, 500MB, 8G), a share of the device (25%),\n"
        "or a share of the job's own peak (25%peak)");
  }
  const bool is_zero = size->bytes == 0 && size->share_per_billion == 0;
  if (is_zero) {
    throw Failure(kExitUsage, option_name + " cannot be zero",
                  "a job needs some memory to compute in",
                  "give it more, for example " + option_name + " 25%peak");
  }
  return *size;
}

base::Size ParseHostOption(const std::string& value) {
  const std::optional<base::Size> given = base::ParseSize(value);
  if (given && given->kind == base::SizeKind::kBytes && given->bytes == 0) {
    throw Failure(kExitUsage, "--host cannot be zero",
                  "memory that leaves the device must lie somewhere",
                  "leave out --host (80 % of what is free), or give it some, for example --host "
                  "8GiB; for a job\n"
                  "that is to move nothing leave out --budget");
  }
  const base::Size size = ParseSizeOption("--host", value);
  if (size.kind != base::SizeKind::kBytes) {
    throw Failure(kExitUsage, "--host cannot be '" + value + "'",
                  "host memory is no share of the device or the job",
                  "write it in bytes, for example --host 64GiB");
  }
  return size;
}

std::string ParseFileOption(const std::string& option_name, const std::string& example,
                            const std::string& value) {
  if (!value.empty()) return value;
  throw Failure(kExitUsage, option_name + " needs a file name", "the one given is empty",
                "name a file, for example " + option_name + " " + example);
}

std::string ParseParkOption(const std::string& value) {
  if (value == "auto" || value == "host" || value == "off") return value;
  throw Failure(kExitUsage, "--park cannot be '" + value + "'",
                "it says when evicted memory stays mapped",
                "write --park auto, --park host or --park off");
}

std::string ParseStrategyOption(const std::string& value) {
  if (scheduler::FindStrategy(value)) return value;
  std::string names;
  for (const scheduler::Strategy* strategy : scheduler::AllStrategies())
    names += (names.empty() ? "" : ", ") + std::string(strategy->name());
  throw Failure(kExitUsage, "--strategy cannot be '" + value + "'",
                "there is no strategy of that name",
                "leave it out for Spillway's own, or take one of\n" + names);
}

std::string ParsePlanStoreOption(const std::string& value) {
  if (!value.empty()) return value;
  throw Failure(kExitUsage, "--plan-store needs a folder", "the one given is empty",
                "name a folder, for example --plan-store plans");
}

// Samples one of so many allocations.
std::string ParseCallSitesOption(const std::string& value) {
  constexpr std::size_t kMostDigits = 9;
  if (value.empty()) return "16";
  const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && value.front() != '0' && value.size() <= kMostDigits) return value;
  throw Failure(kExitUsage, "--call-sites cannot be '" + value + "'",
                "it says of how many allocations one is looked at",
                "write a whole number, for example --call-sites=16, or leave it out");
}

void TakeOption(RunOptions& options, int letter, const std::string& value) {
  switch (letter) {
    case 'b':
      options.budget = ParseSizeOption("--budget", value);
      break;
    case 'H':
      options.host = ParseHostOption(value);
      break;
    case 's':
      options.simulate = value.empty() ? kDefaultProfile : value;
      break;
    case 'r':
      options.report = ParseFileOption("--report", "report.json", value);
      break;
    case 't':
      options.trace = ParseFileOption("--trace", "trace.json", value);
      break;
    case 'c':
      options.call_sites = ParseCallSitesOption(value);
      break;
    case 'a':
      if (value == "required") options.requires_agent = true;
      options.agent = AgentAddress(value == "required" ? "" : value);
      break;
    case 'A':
      options.requires_agent = true;
      break;
    case 'p':
      options.park = ParseParkOption(value);
      break;
    case 'S':
      options.strategy = ParseStrategyOption(value);
      break;
    case 'L':
      options.learn = false;
      break;
    case 'P':
      options.plan_store = ParsePlanStoreOption(value);
      break;
    case 'o':
      options.off = true;
      break;
    case 'q':
      options.quiet = true;
      break;
    case 'n':
      options.framework_switches = false;
      break;
    default:
      options.help = true;
  }
}

void CheckTogether(const RunOptions& options) {
  if (options.command.empty()) {
    throw Failure(kExitUsage, "no command to run", "nothing follows the options",
                  "put it after --, for example: spillway run --budget 25% -- ./train --epochs 10");
  }
  if (!options.call_sites.empty() && options.report.empty()) {
    throw Failure(kExitUsage, "--call-sites needs --report", "the report is where they are listed",
                  "add --report FILE");
  }
  const bool plans = !options.strategy.empty() || !options.plan_store.empty();
  if (!options.learn && plans) {
    throw Failure(kExitUsage, "--no-learn cannot be combined with --strategy or --plan-store",
                  "a job that is not learned is not planned",
                  "leave out --no-learn, or leave out the others");
  }
  if (options.off &&
      (plans || !options.learn || options.budget || options.host || !options.report.empty() ||
       !options.trace.empty() || !options.agent.empty() || options.requires_agent ||
       !options.park.empty() || !options.call_sites.empty())) {
    throw Failure(
        kExitUsage,
        "--off cannot be combined with --budget, --host, --agent, --park, --report, --trace, or "
        "how to learn and plan",
        "--off runs the command without Spillway, so nobody would keep or report them",
        "leave out --off, or leave out the others");
  }
}

}  // namespace

OptionList RunOptionList() { return {"b:r:qh", kRunOptions}; }

RunOptions ParseRunOptions(const std::vector<std::string>& arguments) {
  RunOptions options;
  options.command = ForEachOption(
      arguments, "run", RunOptionList().letters, kRunOptions,
      [&](int letter, const std::string& value) { TakeOption(options, letter, value); });
  if (!options.help) CheckTogether(options);
  if (options.requires_agent && options.agent.empty()) options.agent = AgentAddress("");
  return options;
}

}  // namespace spillway::cli
