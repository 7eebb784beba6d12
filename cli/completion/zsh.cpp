#include "cli/completion/completion.h"

namespace spillway::cli {
namespace {

constexpr char kZshBegin[] = R"SHELL(#compdef spillway spillwayd
# Completion of spillway for zsh; made by `spillway completion zsh`.
_spillway_jobs() {
  local -a jobs
  jobs=(${(f)"$(@JOBS@)"})
  compadd -a jobs
}

)SHELL";

constexpr char kEnd[] = R"SHELL(
# Read by compinit from a folder of $fpath, or by eval.
if [[ ${funcstack[1]} == _spillway ]]; then
  _spillway "$@"
else
  compdef _spillway spillway spillwayd
fi
)SHELL";

// For single quotes, and for brackets or colons of _arguments.
std::string EscapedForZsh(const std::string& text) {
  std::string escaped;
  for (char letter : text) {
    if (letter == '\'') {
      escaped += "'\\''";
    } else {
      if (letter == '[' || letter == ']' || letter == ':') escaped += '\\';
      escaped += letter;
    }
  }
  return escaped;
}

std::string ActionOf(Kind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case Kind::kWords:
      return "(" + Joined(words) + ")";
    case Kind::kFile:
      return "_files";
    case Kind::kFolder:
      return "_files -/";
    case Kind::kJob:
      return "_spillway_jobs";
    default:
      return "";
  }
}

std::string LineOf(const Option& option) {
  const std::string description = FirstClauseOf(option);
  std::string text = description.empty() ? "" : "[" + EscapedForZsh(description) + "]";
  const std::string value =
      EscapedForZsh(std::string(option.name)) + ":" + ActionOf(option.value.kind, WordsOf(option));
  if (option.value.need == Need::kAlways) text += ":" + value;
  if (option.value.need == Need::kMaybe) text += "::" + value;
  const std::string sign = option.value.need == Need::kAlways  ? "="
                           : option.value.need == Need::kMaybe ? "=-"
                                                               : "";
  std::string lines = "        '--" + std::string(option.name) + sign + text + "' \\\n";
  if (option.letter != 0) lines += std::string("        '-") + option.letter + text + "' \\\n";
  return lines;
}

std::string ZshOperands(const Command& command) {
  std::string text;
  if (!command.verbs.empty()) text += "        '1:word:(" + Joined(command.verbs) + ")' \\\n";
  if (command.operand == Kind::kProgram)
    return "        '(-)1:program: _command_names -e' \\\n        '*::argument: _normal' \\\n";
  if (command.operand == Kind::kFile) text += "        '*:file:_files' \\\n";
  if (command.operand == Kind::kJob)
    text += std::string("        '") + (command.verbs.empty() ? "1" : "2") +
            ":job:_spillway_jobs' \\\n";
  return text;
}

// $service names the program that is typed.
std::string DaemonLines(const Command& daemon) {
  std::string lines = "  if [[ $service == " + daemon.name + " ]]; then\n    _arguments -S \\\n";
  for (const Option& option : daemon.options) lines += LineOf(option);
  return lines + "        && return\n    return 1\n  fi\n";
}

}  // namespace

std::string ZshCompletion(const std::vector<Command>& commands, const Command& daemon) {
  std::string script = kZshBegin;
  script.replace(script.find("@JOBS@"), 6, kListJobs);
  script += "_spillway() {\n  local curcontext=$curcontext state line\n  local -a subcommands\n" +
            DaemonLines(daemon) + "  subcommands=(\n";
  for (const Command& command : commands)
    script += "    '" + command.name + ":" + EscapedForZsh(command.summary) + "'\n";
  script +=
      "  )\n  _arguments -C '(- *)--help[help]' '(- *)--version[the version]' "
      "'1:command:->command' "
      "'*::word:->word'\n"
      "  case $state in\n    command) _describe command subcommands ;;\n    word)\n      case "
      "$words[1] in\n";
  for (const Command& command : commands) {
    if (command.options.empty() && command.verbs.empty()) continue;
    script += "      " + command.name + ")\n        _arguments -S \\\n";
    for (const Option& option : command.options) script += LineOf(option);
    script += ZshOperands(command) + "        && return\n        ;;\n";
  }
  return script + "      esac\n      ;;\n  esac\n}\n" + kEnd;
}

}  // namespace spillway::cli
