#include "cli/run_options.h"

#include "cli/agent_client.h"
#include "cli/failure.h"
#include "cli/options/option_parser.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {
namespace {

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
  // The agent's protocol has no larger sizes.
  if (size->bytes > static_cast<uint64_t>(protocol::kMostBytes)) {
    throw Failure(kExitUsage, option_name + " cannot be '" + value + "'",
                  "no device and no node has that much memory",
                  "write at most " + base::FormatBytesExactly(protocol::kMostBytes));
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

std::string ParseWorkspaceOption(const std::string& value) {
  if (value == "fit" || value == "as-bare") return value;
  if (const auto size = base::ParseSize(value); size && size->kind == base::SizeKind::kBytes)
    return std::to_string(size->bytes);
  throw Failure(kExitUsage, "--workspace cannot be '" + value + "'",
                "it says which workspaces cuDNN's algorithms may have",
                "write --workspace fit, --workspace as-bare, or a size like --workspace 256MiB");
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

std::string ParseCallSitesOption(const std::string& value) {
  constexpr std::size_t kMostDigits = 9;
  if (value.empty()) return "16";
  const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && value.front() != '0' && value.size() <= kMostDigits) return value;
  throw Failure(kExitUsage, "--call-sites cannot be '" + value + "'",
                "it says of how many allocations one is looked at",
                "write a whole number, for example --call-sites=16, or leave it out");
}

void TakeAgent(RunOptions& options, const std::string& value) {
  if (value == "required") options.requires_agent = true;
  options.agent = AgentAddress(value == "required" ? "" : value);
}

constexpr OptionRow<RunOptions> kRunRows[] = {
    {{"budget", 'b', Value("SIZE"),
      "device memory the job may hold, at least 4MiB (default: all of the device)"},
     [](RunOptions& run, const std::string& value) {
       run.budget = ParseSizeOption("--budget", value);
     }},
    {{"host", 0, Value("SIZE"),
      "host memory that evicted data may take (default: 80 % of what is free)"},
     [](RunOptions& run, const std::string& value) { run.host = ParseHostOption(value); }},
    {{"agent", 0, ValueIfAny("SOCKET", Kind::kFile),
      "follow the node agent: the budget is what it grants, at most --budget, and changes while "
      "the job runs (default socket: $SPILLWAY_SOCKET, or /run/spillway/agent.sock). Without an "
      "agent that takes it the job runs with the budget of this command line, and says so"},
     TakeAgent},
    {{"require-agent", 0, kNoValue,
      "refuse to run without an agent that knows the device; the job gets no device memory but "
      "what the agent grants. --agent=required is the same at the default socket. An "
      "administrator can require it of all jobs: agent = \"required\" in "
      "/etc/spillway/run.toml"},
     [](RunOptions& run, const std::string&) { run.requires_agent = true; }},
    {{"park", 0, Value("WHEN", Kind::kWords, "auto host off"),
      "evicted memory stays mapped, on the host, so that kernels may reach it by pointers in "
      "memory: host: always; off: never, the job is assumed_safe for; auto (default): until it is "
      "known that its kernels build no structures of pointers"},
     [](RunOptions& run, const std::string& value) { run.park = ParseParkOption(value); }},
    {{"workspace", 0, Value("HOW", Kind::kWords, "fit as-bare 512MiB"),
      "which cuDNN algorithms the program is offered: fit (default): those whose workspace cannot "
      "fit the budget beside the operation's tensors are hidden while others remain, and the "
      "report names the operations; SIZE: likewise those whose workspace is larger than this; "
      "as-bare: all, and what does not fit is slow, or fails"},
     [](RunOptions& run, const std::string& value) {
       run.workspace = ParseWorkspaceOption(value);
     }},
    {{"strategy", 0, StrategyValue(),
      "who plans what moves once the job's iteration is known: spillway (default), or one of the "
      "papers' strategies, for comparison (--strategy list shows their names)"},
     [](RunOptions& run, const std::string& value) { run.strategy = ParseStrategyOption(value); }},
    {{"no-learn", 0, kNoValue,
      "make no plan: move memory only when something else needs its place"},
     [](RunOptions& run, const std::string&) { run.learn = false; }},
    {{"lend-pools", 0, kNoValue,
      "with the agent: pools that the program maps itself (PyTorch's expandable segments) leave "
      "while it is idle. When it goes on, it waits until others give back memory for the whole "
      "pool, 10 s at most; then it uses the pool on the host, or with --park=off gets an "
      "out-of-memory error"},
     [](RunOptions& run, const std::string&) { run.lends_pools = true; }},
    {{"no-repeat-kernels", 0, kNoValue,
      "never run the program's own kernels more often than it says. By default a job that lacks "
      "memory repeats some, in experiments that show what they do, and to recompute what they "
      "made. Each result is compared; a difference ends the program before it receives a wrong "
      "byte"},
     [](RunOptions& run, const std::string&) { run.repeats_kernels = false; }},
    {{"plan-store", 0, Value("DIR", Kind::kFolder),
      "where plans are kept, so that the next run of this job has one from its second iteration "
      "on (default: $XDG_STATE_HOME/spillway/plans, or ~/.local/state/spillway/plans)"},
     [](RunOptions& run, const std::string& value) {
       run.plan_store = ParsePlanStoreOption(value);
     }},
    {{"simulate", 0, ValueIfAny("PROFILE", Kind::kWords, kProfileWords),
      "run on the simulated GPU ({values}; default h200)"},
     [](RunOptions& run, const std::string& value) {
       run.simulate = value.empty() ? kDefaultProfile : value;
     }},
    {{"report", 'r', Value("FILE", Kind::kFile), "write what happened as JSON when the job ends"},
     [](RunOptions& run, const std::string& value) {
       run.report = ParseFileOption("--report", "report.json", value);
     }},
    {{"trace", 0, Value("FILE", Kind::kFile),
      "write what happens, as it happens: operations, copies, memory, waits, plans, in Chrome's "
      "trace format, for `spillway view FILE` or ui.perfetto.dev; costs some microseconds per "
      "operation. A job that is killed leaves what it did. Child processes write FILE.<pid>"},
     [](RunOptions& run, const std::string& value) {
       run.trace = ParseFileOption("--trace", "trace.json", value);
     }},
    {{"call-sites", 0, ValueIfAny("N"),
      "list in the report which libraries and functions allocated the device memory, by every "
      "N-th allocation (default 16) and all large ones; better where libunwind is installed"},
     [](RunOptions& run, const std::string& value) {
       run.call_sites = ParseCallSitesOption(value);
     }},
    {{"off", 0, kNoValue, "run the command without Spillway, for comparison"},
     [](RunOptions& run, const std::string&) { run.off = true; }},
    {{"no-framework-env", 0, kNoValue,
      "leave PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, TF_GPU_ALLOCATOR, "
      "XLA_PYTHON_CLIENT_ALLOCATOR and XLA_PYTHON_CLIENT_PREALLOCATE alone (else they ask for an "
      "allocation per tensor, unless you have set them). PyTorch programs that share tensors "
      "between processes need it"},
     [](RunOptions& run, const std::string&) { run.framework_env = false; }},
    {{"quiet", 'q', kNoValue, "no start line, no summary, no progress line"},
     [](RunOptions& run, const std::string&) { run.quiet = true; }},
    HelpRow<RunOptions>(),
};

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
       !options.park.empty() || !options.workspace.empty() || !options.call_sites.empty() ||
       !options.repeats_kernels || options.lends_pools)) {
    throw Failure(kExitUsage,
                  "--off cannot be combined with --budget, --host, --agent, --park, --workspace, "
                  "--report, --trace, or "
                  "how to learn and plan",
                  "--off runs the command without Spillway, so nobody would keep or report them",
                  "leave out --off, or leave out the others");
  }
}

}  // namespace

std::vector<Option> RunOptionList() { return OptionsIn(kRunRows); }

RunOptions ParseRunOptions(const std::vector<std::string>& arguments) {
  RunOptions options;
  options.command = ParseOptions(arguments, kRunRows, options);
  if (!options.help) CheckTogether(options);
  if (options.requires_agent && options.agent.empty()) options.agent = AgentAddress("");
  return options;
}

}  // namespace spillway::cli
