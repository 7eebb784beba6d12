#include "cli/command_list.h"

#include "base/options/daemon_command_line.h"
#include "cli/agent_commands.h"
#include "cli/cdi_command.h"
#include "cli/doctor.h"
#include "cli/options/planner_options.h"
#include "cli/run_options.h"
#include "cli/top.h"

namespace spillway::cli {
namespace {

std::vector<std::string> NamesOf(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

Command AgentCommandRow(const std::string& name, const std::string& summary,
                        std::vector<std::string> verbs = {}, Kind operand = Kind::kNothing) {
  return {name, summary, AgentOptionList(name), std::move(verbs), operand};
}

Command PlannerCommandRow(const std::string& name, const std::string& summary,
                          std::vector<std::string> verbs = {}) {
  return {name, summary, PlannerOptionList(name), std::move(verbs), Kind::kFile};
}

std::vector<Command> CommandsWithoutHelp() {
  return {
      {"run", "run a command under a budget", RunOptionList(), {}, Kind::kProgram},
      {"doctor", "what on this machine would stop that", DoctorOptionList(), {}},
      {"cdi", "a CDI specification, for containers", CdiOptionList(), {}},
      AgentCommandRow("status", "what the node agent shares"),
      {"top", "the same, live", TopOptionList(), {}},
      AgentCommandRow("jobs", "the node's jobs"),
      AgentCommandRow("job", "all that is known of one job", {}, Kind::kJob),
      AgentCommandRow("budget", "give a running job another budget", {"set"}, Kind::kJob),
      AgentCommandRow("drain", "let no new job begin on this node"),
      AgentCommandRow("undrain", "let jobs begin again"),
      AgentCommandRow("config", "the configuration of the agent",
                      {"check", "show", "diff", "reload", "log"}),
      {"completion", "completion for a shell", {}, {"bash", "zsh", "fish"}},
      PlannerCommandRow("plan", "what an iteration would cost at a budget"),
      PlannerCommandRow("trace", "look at recorded iterations", {"print", "convert", "trim"}),
      PlannerCommandRow("view", "what a job did, as a page for a browser"),
      PlannerCommandRow("advise", "which minibatch suits a budget"),
  };
}

}  // namespace

std::vector<Command> AllCommands() {
  std::vector<Command> commands = CommandsWithoutHelp();
  commands.push_back({"help", "options, sizes and exit codes", {}, HelpTopics()});
  commands.push_back({"version", "the version", {}, {}});
  return commands;
}

Command DaemonCommand() {
  return {"spillwayd", "the node agent", base::OptionsIn(base::kDaemonRows), {}};
}

std::vector<std::string> HelpTopics() { return NamesOf(CommandsWithoutHelp()); }

std::string Listed(const std::vector<std::string>& words) {
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  return Joined(first, ", ") + " and " + words.back();
}

std::string ListedCommands() { return Listed(NamesOf(AllCommands())); }

}  // namespace spillway::cli
