#include "cli/completion/command_list.h"

#include <cctype>
#include <cstring>
#include <sstream>

#include "cli/agent_commands.h"
#include "cli/doctor.h"
#include "cli/help.h"
#include "cli/option_list.h"
#include "cli/run_options.h"
#include "cli/top.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {
namespace {

const std::vector<std::string> kProfiles = {"k40c", "m40", "1080ti", "a100", "h200"};

// spillway-plan has its own parser and help. A test compares these tables with them.
constexpr option kPlanOptions[] = {{"budget", required_argument, nullptr, 'b'},
                                   {"strategy", required_argument, nullptr, 's'},
                                   {"device", required_argument, nullptr, 'd'},
                                   {"chunk", required_argument, nullptr, 0},
                                   {"link-share", required_argument, nullptr, 0},
                                   {"seed", required_argument, nullptr, 0},
                                   {"repair", no_argument, nullptr, 0},
                                   {"place", no_argument, nullptr, 0},
                                   {"explain", no_argument, nullptr, 0},
                                   {"json", no_argument, nullptr, 0},
                                   {"svg", required_argument, nullptr, 0},
                                   {"perfetto", required_argument, nullptr, 0},
                                   {"curve", required_argument, nullptr, 0},
                                   {"help", no_argument, nullptr, 'h'},
                                   {}};
constexpr option kTraceOptions[] = {
    {"device", required_argument, nullptr, 'd'}, {"profile", no_argument, nullptr, 0},
    {"from", required_argument, nullptr, 0},     {"until", required_argument, nullptr, 0},
    {"help", no_argument, nullptr, 'h'},         {}};
constexpr option kAdviseOptions[] = {
    {"budget", required_argument, nullptr, 'b'},   {"device", required_argument, nullptr, 'd'},
    {"chunk", required_argument, nullptr, 0},      {"learning-rate", required_argument, nullptr, 0},
    {"base-batch", required_argument, nullptr, 0}, {"batch-step", required_argument, nullptr, 0},
    {"most-batch", required_argument, nullptr, 0}, {"json", no_argument, nullptr, 0},
    {"help", no_argument, nullptr, 'h'},           {}};
constexpr option kViewOptions[] = {
    {"output", required_argument, nullptr, 'o'}, {"help", no_argument, nullptr, 'h'}, {}};
constexpr option kNoOptions[] = {{}};

struct Values {
  const char* option;
  Kind kind;
  std::vector<std::string> words;
};

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const scheduler::Strategy* strategy : scheduler::AllStrategies())
    names.emplace_back(strategy->name());
  return names;
}

// An option's values are the same in every subcommand.
const std::vector<Values>& KnownValues() {
  static const std::vector<Values> known = {
      {"park", Kind::kWords, {"auto", "host", "off"}},
      {"strategy", Kind::kWords, StrategyNames()},
      {"simulate", Kind::kWords, kProfiles},
      {"device", Kind::kWords, kProfiles},
      {"plan-store", Kind::kFolder, {}},
      {"report", Kind::kFile, {}},
      {"trace", Kind::kFile, {}},
      {"socket", Kind::kFile, {}},
      {"agent", Kind::kFile, {}},
      {"config", Kind::kFile, {}},
      {"svg", Kind::kFile, {}},
      {"perfetto", Kind::kFile, {}},
      {"curve", Kind::kFile, {}},
      {"output", Kind::kFile, {}},
  };
  return known;
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin);
}

std::string FirstClause(std::string text) {
  text = Trimmed(text);
  for (const char* end : {" (", "; "}) text = text.substr(0, text.find(end));
  while (!text.empty() && std::ispunct(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// An option's description in the help: after two spaces on its line, or alone on the next line.
std::string DescriptionIn(const std::string& help, const std::string& name) {
  std::istringstream lines(help);
  const std::string written = "--" + name;
  for (std::string line; std::getline(lines, line);) {
    const std::string text = Trimmed(line);
    const size_t at = text.find(written);
    const char after = at == std::string::npos ? 'x' : text.c_str()[at + written.size()];
    const bool is_its_line =
        text.rfind('-', 0) == 0 && at <= 4 && std::strchr(" [=", after) != nullptr;
    if (!is_its_line) continue;
    const size_t gap = text.find("  ", at);
    if (gap != std::string::npos) return FirstClause(text.substr(gap));
    const size_t bracket = text.find("] ", at);
    if (bracket != std::string::npos) return FirstClause(text.substr(bracket + 1));
    std::getline(lines, line);
    return FirstClause(line);
  }
  return "";
}

bool IsLetterOf(const OptionList& list, int value) {
  return value > 0 && value < 128 && std::strchr(list.letters, value) != nullptr;
}

std::vector<OptionWord> OptionsOf(const OptionList& list, const std::string& help) {
  std::vector<OptionWord> words;
  for (const option* one = list.options; one->name != nullptr; ++one) {
    OptionWord word;
    word.name = one->name;
    if (IsLetterOf(list, one->val)) word.letter = static_cast<char>(one->val);
    word.need = one->has_arg == no_argument         ? Need::kNever
                : one->has_arg == required_argument ? Need::kAlways
                                                    : Need::kMaybe;
    word.description =
        word.name == "help" ? "help on this command" : DescriptionIn(help, word.name);
    if (word.need != Need::kNever) word.value = Kind::kText;
    for (const Values& values : KnownValues()) {
      if (word.need == Need::kNever || word.name != values.option) continue;
      word.value = values.kind;
      word.words = values.words;
    }
    words.push_back(word);
  }
  return words;
}

struct Row {
  const char* name;
  const char* summary;
  OptionList options;
  std::vector<std::string> verbs;
  Kind operand;
};

std::vector<Row> Rows() {
  const std::vector<std::string> topics = {"run",  "doctor", "status", "top",     "jobs",
                                           "job",  "budget", "drain",  "undrain", "config",
                                           "plan", "trace",  "view",   "advise",  "completion"};
  return {
      {"run", "run a command under a budget", RunOptionList(), {}, Kind::kProgram},
      {"doctor", "what on this machine would stop that", DoctorOptionList(), {}, Kind::kNothing},
      {"status", "what the node agent shares", AgentOptionList("status"), {}, Kind::kNothing},
      {"top", "the same, live", TopOptionList(), {}, Kind::kNothing},
      {"jobs", "the node's jobs", AgentOptionList("jobs"), {}, Kind::kNothing},
      {"job", "all that is known of one job", AgentOptionList("job"), {}, Kind::kJob},
      {"budget",
       "give a running job another budget",
       AgentOptionList("budget"),
       {"set"},
       Kind::kJob},
      {"drain", "let no new job begin on this node", AgentOptionList("drain"), {}, Kind::kNothing},
      {"undrain", "let jobs begin again", AgentOptionList("undrain"), {}, Kind::kNothing},
      {"config",
       "the configuration of the agent",
       AgentOptionList("config"),
       {"check", "show", "diff", "reload", "log"},
       Kind::kNothing},
      {"plan",
       "what an iteration would cost at a budget",
       {"b:s:d:h", kPlanOptions},
       {},
       Kind::kFile},
      {"trace",
       "look at recorded iterations",
       {"d:h", kTraceOptions},
       {"print", "convert", "trim"},
       Kind::kFile},
      {"view", "what a job did, as a page for a browser", {"o:h", kViewOptions}, {}, Kind::kFile},
      {"advise", "which minibatch suits a budget", {"b:d:h", kAdviseOptions}, {}, Kind::kFile},
      {"completion",
       "completion for a shell",
       {"", kNoOptions},
       {"bash", "zsh", "fish"},
       Kind::kNothing},
      {"help", "options, sizes and exit codes", {"", kNoOptions}, topics, Kind::kNothing},
      {"version", "the version", {"", kNoOptions}, {}, Kind::kNothing},
  };
}

bool IsPlanners(const std::string& name) {
  return name == "plan" || name == "trace" || name == "view" || name == "advise";
}

}  // namespace

std::vector<CommandWord> AllCommands() {
  std::vector<CommandWord> commands;
  for (const Row& row : Rows()) {
    const bool has_help = row.options.options->name != nullptr && !IsPlanners(row.name);
    const std::string help = has_help ? HelpText(row.name) : "";
    commands.push_back(
        {row.name, row.summary, OptionsOf(row.options, help), row.verbs, row.operand});
  }
  return commands;
}

}  // namespace spillway::cli
