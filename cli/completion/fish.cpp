#include "cli/completion/completion.h"

namespace spillway::cli {
namespace {

constexpr char kFishBegin[] =
    R"SHELL(# Completion of spillway for fish; made by `spillway completion fish`.
function __spillway_jobs
    @JOBS@
end

# Whether the subcommand is $argv[1].
function __spillway_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end

function __spillway_is_bare
    test (count (commandline -opc)) -eq 1
end

# Whether the verb of the subcommand is still to come.
function __spillway_is_at_verb
    test (count (commandline -opc)) -eq 2
end

# Where the program of `spillway run` begins: behind --, or at the first word that is no option and no option's value. Fails
# when it has not begun.
function __spillway_program_at
    set -l words (commandline -opc)
    set -l at 3
    while test $at -le (count $words)
        set -l word $words[$at]
        if contains -- $word @VALUED@
            set at (math $at + 1)
        else if test $word = --
            echo (math $at + 1)
            return 0
        else if not string match -q -- '-*' $word
            echo $at
            return 0
        end
        set at (math $at + 1)
    end
    echo $at
    return 1
end

# What follows is the program's own command line.
function __spillway_complete_program
    set -l words (commandline -opc)
    set -l at (__spillway_program_at)
    set -l program
    test $at -le (count $words); and set program (string escape -- $words[$at..])
    complete -C (string join ' ' -- $program (commandline -ct))
end

complete -c spillway -f
)SHELL";

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char letter : text)
    quoted +=
        letter == '\'' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  return quoted + "'";
}

std::string Described(const std::string& description) {
  return description.empty() ? "" : " -d " + Quoted(description);
}

std::string ValueOf(const Option& option) {
  const std::string required = option.value.need == Need::kAlways ? " -r" : "";
  switch (option.value.kind) {
    case Kind::kWords:
      return required + " -f -a " + Quoted(Joined(WordsOf(option)));
    case Kind::kFile:
      return required + " -F";
    case Kind::kFolder:
      return required + " -f -a '(__fish_complete_directories)'";
    default:
      return required + (option.value.need == Need::kAlways ? " -f" : "");
  }
}

// After "complete -c PROGRAM".
std::string OptionAsWords(const Option& option) {
  const std::string letter = option.letter == 0 ? "" : std::string(" -s ") + option.letter;
  return " -l " + std::string(option.name) + letter + ValueOf(option) +
         Described(FirstClauseOf(option)) + "\n";
}

std::string LineOf(const Command& command, const Option& option) {
  std::string condition = "__spillway_is " + command.name;
  if (command.operand == Kind::kProgram) condition += "; and not __spillway_program_at >/dev/null";
  return "complete -c spillway -n " + Quoted(condition) + OptionAsWords(option);
}

std::string FishOperands(const Command& command) {
  const std::string begin = "complete -c spillway -n '__spillway_is " + command.name;
  std::string text;
  if (!command.verbs.empty())
    text += begin + "; and __spillway_is_at_verb' -a " + Quoted(Joined(command.verbs)) + "\n";
  const std::string rest =
      command.verbs.empty() ? begin : begin + "; and not __spillway_is_at_verb";
  if (command.operand == Kind::kFile) text += rest + "' -F\n";
  if (command.operand == Kind::kJob) text += rest + "' -a '(__spillway_jobs)'\n";
  if (command.operand == Kind::kProgram) text += rest + "' -a '(__spillway_complete_program)'\n";
  return text;
}

std::vector<std::string> ValuedOptions(const Command& command) {
  std::vector<std::string> valued;
  for (const Option& option : command.options) {
    if (option.value.need != Need::kAlways) continue;
    valued.push_back("--" + std::string(option.name));
    if (option.letter != 0) valued.push_back({'-', option.letter});
  }
  return valued;
}

void Put(std::string& text, const std::string& mark, const std::string& value) {
  text.replace(text.find(mark), mark.size(), value);
}

}  // namespace

std::string FishCompletion(const std::vector<Command>& commands, const Command& daemon) {
  std::string script = kFishBegin;
  Put(script, "@JOBS@", kListJobs);
  Put(script, "@VALUED@", Joined(ValuedOptions(commands.front())));
  for (const Command& command : commands) {
    script += "\ncomplete -c spillway -n __spillway_is_bare -a " + command.name +
              Described(command.summary) + "\n";
    for (const Option& option : command.options) script += LineOf(command, option);
    script += FishOperands(command);
  }
  script += "\ncomplete -c " + daemon.name + " -f\n";
  for (const Option& option : daemon.options)
    script += "complete -c " + daemon.name + OptionAsWords(option);
  return script;
}

}  // namespace spillway::cli
