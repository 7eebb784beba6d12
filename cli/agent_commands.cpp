#include "cli/agent_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/json_text.h"
#include "base/size_text.h"
#include "base/terminal.h"
#include "cli/agent_client.h"
#include "cli/help.h"
#include "cli/installation.h"
#include "cli/job_name.h"
#include "cli/options/option_parser.h"

namespace spillway::cli {
namespace {

using protocol::Question;

struct ViewOptions {
  std::string socket;
  std::string config;
  bool json = false;
  bool help = false;
  std::vector<std::string> operands;
};

constexpr char kJsonDescription[] =
    "for scripts: \"schema\" is a number; fields keep their meaning within it. What fails says so "
    "with \"done\": false, \"exit_code\", \"problem\" and \"why\"";

constexpr OptionRow<ViewOptions> kViewRows[] = {
    JsonRow<ViewOptions>(kJsonDescription),
    SocketRow<ViewOptions>(),
    HelpRow<ViewOptions>(),
};

constexpr OptionRow<ViewOptions> kConfigRows[] = {
    {{"config", 0, Value("FILE", Kind::kFile),
      "the file to check or show instead of /etc/spillway/spillway.toml; drop-ins are in "
      "spillway.d beside it"},
     [](ViewOptions& options, const std::string& value) { options.config = value; }},
    JsonRow<ViewOptions>(kJsonDescription),
    SocketRow<ViewOptions>(),
    HelpRow<ViewOptions>(),
};

Failure Misused(const std::string& subcommand, const std::string& what, const std::string& why) {
  return {kExitUsage, what, why, "see: spillway help " + subcommand};
}

ViewOptions ParseViewOptions(const std::vector<std::string>& arguments, size_t operands,
                             size_t more = 0) {
  ViewOptions options;
  options.operands = arguments.front() == "config"
                         ? ParseOptionsAnywhere(arguments, kConfigRows, options)
                         : ParseOptionsAnywhere(arguments, kViewRows, options);
  if (!options.help &&
      (options.operands.size() < operands || options.operands.size() > operands + more))
    throw Misused(arguments.front(),
                  "`spillway " + arguments.front() + "` takes " +
                      (operands == 0   ? "no operand"
                       : operands == 1 ? "one operand"
                                       : "operands"),
                  std::to_string(options.operands.size()) + " are given");
  return options;
}

uint16_t Columns() {
  const size_t columns = base::TerminalColumns(STDOUT_FILENO);
  return columns == SIZE_MAX ? 0 : static_cast<uint16_t>(std::min<size_t>(columns, 1000));
}

int View(Question question, const std::vector<std::string>& arguments) {
  const ViewOptions options = ParseViewOptions(arguments, question == Question::kJob ? 1 : 0);
  if (options.help) return std::fputs(HelpText(arguments.front()).c_str(), stdout), 0;
  protocol::Ask ask;
  ask.question = question;
  ask.form = options.json ? protocol::Form::kJson : protocol::Form::kText;
  ask.columns = Columns();
  AgentClient agent(options.socket);
  const auto answer_for = [&](const std::string& job) {
    ask.job = job;
    return agent.Ask(ask);
  };
  const std::string answer = options.operands.empty()
                                 ? agent.Ask(ask)
                                 : AskForJob(options.operands.front(), agent, answer_for);
  std::fputs(answer.c_str(), stdout);
  return 0;
}

void TakeSize(const std::string& written, int64_t& bytes, std::optional<base::Size>& share) {
  const std::optional<base::Size> size = base::ParseSize(written);
  const bool is_share = size && size->kind == base::SizeKind::kShareOfDevice;
  const bool is_good = size && size->kind != base::SizeKind::kShareOfPeak &&
                       size->bytes <= static_cast<uint64_t>(protocol::kMostBytes) &&
                       size->share_per_billion <= 1'000'000'000;
  if (!is_good)
    throw Misused("budget", "'" + written + "' is no size",
                  "sizes are written like 8GiB, 500MB, 8589934592, or 25% of the device (of the "
                  "node's for --host)");
  share = is_share ? size : std::nullopt;
  bytes = is_share ? protocol::kUnchanged : static_cast<int64_t>(size->bytes);
}

void CheckLimit(const BudgetOptions& options) {
  const bool is_zero = options.limit_share ? options.limit_share->share_per_billion == 0
                                           : options.wanted.limit_bytes == 0;
  if (is_zero)
    throw Failure(kExitUsage, "a budget cannot be zero", "a job needs some memory to compute in",
                  "give it more, for example 25%; to let no new job begin: spillway drain");
}

std::vector<uint64_t> MemoriesIn(const std::string& status, const std::string& from,
                                 const std::string& until) {
  std::vector<uint64_t> memories;
  constexpr std::string_view key = "\"memory_bytes\": ";
  const size_t end = std::min(status.find(until), status.size());
  for (size_t at = status.find(from); (at = status.find(key, at)) < end; at += key.size())
    memories.push_back(std::strtoull(status.c_str() + at + key.size(), nullptr, 10));
  return memories;
}

uint64_t OnlyOne(const std::vector<uint64_t>& memories, const std::string& what) {
  const bool is_one =
      !memories.empty() && std::count(memories.begin(), memories.end(), memories.front()) ==
                               static_cast<std::ptrdiff_t>(memories.size());
  if (!is_one)
    throw Failure(kExitUsage, "a share of " + what + " is not known",
                  memories.empty() ? "the agent says none" : "this node's devices differ",
                  "write the size in bytes; see: spillway status");
  return memories.front();
}

void SetShare(const std::optional<base::Size>& share, uint64_t whole_bytes, int64_t& bytes) {
  if (share) bytes = static_cast<int64_t>(base::ResolveSize(*share, whole_bytes));
}

int32_t NumberIn(const std::string& written, int32_t least, int32_t most, const std::string& what) {
  int32_t number = 0;
  const auto [end, error] =
      std::from_chars(written.data(), written.data() + written.size(), number);
  if (error != std::errc() || *end != 0 || number < least || number > most)
    throw Misused(
        "budget", "'" + written + "' is no " + what,
        "it is a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return number;
}

std::string StatusAsJson(const std::string& socket) {
  protocol::Ask ask;
  ask.question = Question::kStatus;
  ask.form = protocol::Form::kJson;
  return AgentClient(socket).Ask(ask);
}

// "25%" gives 250.
int32_t PermilleIn(std::string written) {
  if (!written.empty() && written.back() == '%') written.pop_back();
  return NumberIn(written, 1, 100, "share of the link in per cent") * 10;
}

int64_t WorkspaceLimitIn(const std::string& written) {
  if (written == "any") return protocol::kMostBytes;
  const std::optional<base::Size> size = base::ParseSize(written);
  const bool is_good = size && size->kind == base::SizeKind::kBytes &&
                       size->bytes < static_cast<uint64_t>(protocol::kMostBytes);
  if (!is_good)
    throw Misused("budget", "'" + written + "' is no size of a workspace",
                  "it is written like 256MiB or 1GiB; any: no limit");
  return static_cast<int64_t>(size->bytes);
}

constexpr OptionRow<BudgetOptions> kBudgetRows[] = {
    {{"guaranteed", 0, Value("SIZE"), "device memory that comes back as soon as the job wants it"},
     [](BudgetOptions& options, const std::string& value) {
       TakeSize(value, options.wanted.guaranteed_bytes, options.guaranteed_share);
     }},
    {{"host", 0, Value("SIZE"), "the most host memory for evicted memory"},
     [](BudgetOptions& options, const std::string& value) {
       TakeSize(value, options.wanted.host_bytes, options.host_share);
     }},
    {{"link", 0, Value("PERCENT"), "the most of the link between host and device"},
     [](BudgetOptions& options, const std::string& value) {
       options.wanted.link_permille = PermilleIn(value);
     }},
    {{"workspace", 0, Value("SIZE"),
      "the most device memory of one cuDNN workspace, for algorithms that the program chooses from "
      "now on; any: no limit"},
     [](BudgetOptions& options, const std::string& value) {
       options.workspace_bytes = WorkspaceLimitIn(value);
     }},
    {{"weight", 0, Value("N"), "weight of its share beside jobs of the same priority (1 to 10000)"},
     [](BudgetOptions& options, const std::string& value) {
       options.wanted.weight = NumberIn(value, 1, 10'000, "weight");
     }},
    {{"priority", 0, Value("N"), "higher goes first (0 to 1000)"},
     [](BudgetOptions& options, const std::string& value) {
       options.wanted.priority_plus_one = NumberIn(value, 0, 1000, "priority") + 1;
     }},
    {{"dry-run", 0, kNoValue, "only say whether it would be done"},
     [](BudgetOptions& options, const std::string&) { options.wanted.dry_run = true; }},
    JsonRow<BudgetOptions>(kJsonDescription),
    SocketRow<BudgetOptions>(),
    HelpRow<BudgetOptions>(),
};

bool ChangesTerms(const BudgetOptions& options) {
  protocol::SetBudget nothing;
  nothing.job = options.wanted.job;
  nothing.dry_run = options.wanted.dry_run;
  return options.wanted != nothing || options.limit_share || options.guaranteed_share ||
         options.host_share;
}

void PrintDone(const protocol::Done& done, const std::string& what, bool json) {
  const bool dry = done.outcome == protocol::Outcome::kWouldBeDone;
  if (json) {
    const std::string note =
        done.text.view().empty() ? "" : ", \"note\": " + base::JsonQuoted(done.text.view());
    std::printf("{\"schema\": 1, \"done\": %s, \"would_be_done\": %s%s}\n", dry ? "false" : "true",
                dry ? "true" : "false", note.c_str());
  } else {
    std::printf("%s%s\n", what.c_str(), dry ? " (would be done)" : "");
    if (!done.text.view().empty())
      std::fprintf(stderr, "spillway: warning: %s\n", std::string(done.text.view()).c_str());
  }
}

protocol::Done ChangeTerms(const BudgetOptions& options, AgentClient& agent) {
  protocol::Done done;
  if (ChangesTerms(options)) done = agent.Request(options.wanted);
  if (options.workspace_bytes)
    done = agent.Request(protocol::SetWorkspace{options.wanted.job, options.wanted.dry_run,
                                                *options.workspace_bytes});
  return done;
}

int Budget(const std::vector<std::string>& arguments) {
  BudgetOptions options = ParseBudgetOptions(arguments);
  if (options.limit_share || options.guaranteed_share || options.host_share)
    ResolveShares(StatusAsJson(options.socket), options);
  if (options.help) return std::fputs(HelpText("budget").c_str(), stdout), 0;
  constexpr uint16_t kWorkspaceVersion = 8;
  AgentClient agent(options.socket);
  if (options.workspace_bytes && agent.version() < kWorkspaceVersion)
    throw Failure(kExitRefusedByAgent, "refused", "the agent is too old to bound workspaces",
                  "restart it in its new version; see: spillwayd --version");
  const protocol::Done done =
      AskForJob(std::string(options.wanted.job.view()), agent, [&](const std::string& job) {
        options.wanted.job = job;
        return ChangeTerms(options, agent);
      });
  PrintDone(done, "the terms of " + std::string(options.wanted.job.view()) + " are changed",
            options.json);
  return 0;
}

int Drain(const std::vector<std::string>& arguments) {
  const ViewOptions options = ParseViewOptions(arguments, 0);
  if (options.help) return std::fputs(HelpText("drain").c_str(), stdout), 0;
  const bool drains = arguments.front() == "drain";
  const protocol::Done done =
      AgentClient(options.socket)
          .Request(protocol::Control{drains ? protocol::Action::kDrain : protocol::Action::kUndrain,
                                     ""});
  PrintDone(done, drains ? "no new job begins here; those that run go on" : "jobs begin here again",
            options.json);
  return 0;
}

// Only the daemon reads its configuration.
[[noreturn]] void BecomeDaemon(const char* wish, const ViewOptions& options) {
  const std::string executable = FindInstallation().executable;
  const std::string daemon = executable.substr(0, executable.rfind('/')) + "/spillwayd";
  std::vector<const char*> words = {"spillwayd", wish};
  if (options.json) words.push_back("--json");
  if (!options.config.empty()) words.insert(words.end(), {"--config", options.config.c_str()});
  words.push_back(nullptr);
  execv(daemon.c_str(), const_cast<char* const*>(words.data()));
  throw Failure(kExitCannotExecute, "cannot run " + daemon, std::strerror(errno),
                "is it installed beside spillway?");
}

int SetLogLevel(const ViewOptions& options) {
  if (options.operands.size() != 2)
    throw Misused("config", "`config log` takes a level", "trace, debug, info, warn or error");
  const std::string& level = options.operands[1];
  const protocol::Done done =
      AgentClient(options.socket).Request(protocol::Control{protocol::Action::kLogLevel, level});
  PrintDone(done, "the agent logs from " + level + " on, until its configuration is read again",
            options.json);
  return 0;
}

int Config(const std::vector<std::string>& arguments) {
  const ViewOptions options = ParseViewOptions(arguments, 1, 1);
  if (options.help) return std::fputs(HelpText("config").c_str(), stdout), 0;
  const std::string& verb = options.operands.front();
  if (verb == "log") return SetLogLevel(options);
  if (options.operands.size() > 1)
    throw Misused("config", "`config " + verb + "` takes no more",
                  options.operands[1] + " is given");
  if (verb == "check") BecomeDaemon("--check", options);
  if (verb == "show") BecomeDaemon("--show", options);
  if (verb == "diff") BecomeDaemon("--diff", options);
  if (verb != "reload")
    throw Misused("config", "no `config " + verb + "`",
                  "there are check, show, diff, reload and log");
  if (!options.config.empty())
    throw Misused("config", "`config reload` takes no --config",
                  "the agent reads the file it was started with");
  const protocol::Done done =
      AgentClient(options.socket).Request(protocol::Control{protocol::Action::kReload, ""});
  PrintDone(done, "the configuration is read again", options.json);
  return 0;
}

struct AgentCommand {
  const char* name;
  int (*run)(const std::vector<std::string>& arguments);
};

constexpr AgentCommand kCommands[] = {
    {"status", [](const std::vector<std::string>& a) { return View(Question::kStatus, a); }},
    {"jobs", [](const std::vector<std::string>& a) { return View(Question::kJobs, a); }},
    {"job", [](const std::vector<std::string>& a) { return View(Question::kJob, a); }},
    {"budget", Budget},
    {"drain", Drain},
    {"undrain", Drain},
    {"config", Config},
};

}  // namespace

BudgetOptions ParseBudgetOptions(const std::vector<std::string>& arguments) {
  BudgetOptions options;
  const auto operands = ParseOptionsAnywhere(arguments, kBudgetRows, options);
  if (options.help) return options;
  if (operands.size() < 2 || operands.size() > 3 || operands[0] != "set")
    throw Misused("budget", "say whose budget", "it is: spillway budget set JOB [SIZE] [options]");
  options.wanted.job = operands[1];
  if (operands.size() == 3) TakeSize(operands[2], options.wanted.limit_bytes, options.limit_share);
  CheckLimit(options);
  if (!ChangesTerms(options) && !options.workspace_bytes)
    throw Misused("budget", "nothing to change", "neither a size nor an option is given");
  return options;
}

void ResolveShares(const std::string& status, BudgetOptions& options) {
  if (options.limit_share || options.guaranteed_share) {
    const uint64_t device_bytes =
        OnlyOne(MemoriesIn(status, "\"devices\": [", "\"jobs\": ["), "the device's memory");
    SetShare(options.limit_share, device_bytes, options.wanted.limit_bytes);
    SetShare(options.guaranteed_share, device_bytes, options.wanted.guaranteed_bytes);
  }
  if (options.host_share)
    SetShare(options.host_share,
             OnlyOne(MemoriesIn(status, "\"host\": {", "\"devices\": ["), "the host's memory"),
             options.wanted.host_bytes);
}

std::vector<Option> AgentOptionList(const std::string& subcommand) {
  if (subcommand == "budget") return OptionsIn(kBudgetRows);
  return subcommand == "config" ? OptionsIn(kConfigRows) : OptionsIn(kViewRows);
}

bool IsAgentCommand(const std::string& subcommand) {
  return std::any_of(std::begin(kCommands), std::end(kCommands),
                     [&](const AgentCommand& command) { return subcommand == command.name; });
}

int RunAgentCommand(const std::vector<std::string>& arguments) {
  const AgentCommand* command =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [&](const AgentCommand& one) { return arguments.front() == one.name; });
  try {
    return command->run(arguments);
  } catch (const Failure& failure) {
    PrintIfJsonRequested(arguments, failure);
    throw;
  }
}

}  // namespace spillway::cli
