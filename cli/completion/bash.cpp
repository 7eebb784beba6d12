#include "cli/completion/completion.h"

namespace spillway::cli {
namespace {

constexpr char kBashBegin[] =
    R"SHELL(# Completion of spillway for bash; made by `spillway completion bash`.
_spillway_jobs() { @JOBS@; }

# Sets COMPREPLY to what of a kind begins with $current.
_spillway_offer() {
  case $1 in
    words) COMPREPLY=($(compgen -W "${*:2}" -- "$current")) ;;
    file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")) ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")) ;;
    job) COMPREPLY=($(compgen -W "$(_spillway_jobs)" -- "$current")) ;;
    program) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -c -f -- "$current")) ;;
  esac
}

)SHELL";

constexpr char kFunction[] = R"SHELL(
# What follows is the program's own command line.
_spillway_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    _spillway_offer program
  else
    _spillway_offer file
  fi
}

_spillway() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  local options='' verbs='' operand='' at operands=0 is_value=0
  local -a values=()
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _spillway_offer words "$_spillway_commands"
    return
  fi
  _spillway_words "$command"
  for ((at = 2; at < COMP_CWORD; ++at)); do
    case ${COMP_WORDS[at]} in
      --) if [[ $operand == program ]]; then _spillway_program $((at + 1)); return; fi ;;
      -*) # bash parts --option=value at the sign.
          if [[ ${COMP_WORDS[at+1]} == = ]]; then
            ((at + 2 >= COMP_CWORD)) && is_value=1 before=${COMP_WORDS[at]}
            ((at += 2))
          elif _spillway_takes_value "$command" "${COMP_WORDS[at]}"; then
            ((++at))
            ((at == COMP_CWORD)) && is_value=1
          fi ;;
      *) if [[ $operand == program ]]; then _spillway_program "$at"; return; fi
         ((++operands)) ;;
    esac
  done
  if [[ $current == = ]]; then current=; fi
  if ((is_value)); then
    _spillway_values "$command" "$before"
    _spillway_offer "${values[@]}"
  elif [[ $current == -* ]]; then
    _spillway_offer words "$options"
  elif [[ -n $verbs ]] && ((operands == 0)); then
    _spillway_offer words "$verbs"
  elif [[ $operand != job ]] || ((operands == (${#verbs} > 0))); then
    _spillway_offer "$operand"
  fi
}

_spillwayd() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local options='' verbs='' operand=''
  local -a values=()
  COMPREPLY=()
  if [[ $current == = ]]; then current=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  _spillway_words spillwayd
  if _spillway_takes_value spillwayd "$before"; then
    _spillway_values spillwayd "$before"
    _spillway_offer "${values[@]}"
  else
    _spillway_offer words "$options"
  fi
}

complete -F _spillway spillway
complete -F _spillwayd spillwayd
)SHELL";

const char* WordFor(Kind kind) {
  switch (kind) {
    case Kind::kFile:
      return "file";
    case Kind::kFolder:
      return "folder";
    case Kind::kWords:
      return "words";
    case Kind::kJob:
      return "job";
    case Kind::kProgram:
      return "program";
    default:
      return "";
  }
}

std::vector<std::string> Written(const Option& option) {
  std::vector<std::string> forms = {"--" + std::string(option.name)};
  if (option.letter != 0) forms.push_back({'-', option.letter});
  return forms;
}

std::string Pattern(const Command& command, const Option& option) {
  std::string pattern;
  for (const std::string& form : Written(option))
    pattern += (pattern.empty() ? "" : " | ") + ("'" + command.name + " " + form + "'");
  return pattern;
}

std::string WordsOf(const Command& command) {
  std::vector<std::string> options;
  for (const Option& option : command.options) {
    for (const std::string& form : Written(option)) options.push_back(form);
  }
  return "    " + command.name + ") options='" + Joined(options) + "' verbs='" +
         Joined(command.verbs) + "' operand=" + WordFor(command.operand) + " ;;\n";
}

}  // namespace

std::string BashCompletion(const std::vector<Command>& commands, const Command& daemon) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  std::vector<Command> listed = commands;
  listed.push_back(daemon);
  std::string words, takers, values;
  for (const Command& command : listed) {
    words += WordsOf(command);
    for (const Option& option : command.options) {
      if (option.value.need == Need::kAlways)
        takers += "    " + Pattern(command, option) + ") return 0 ;;\n";
      if (option.value.kind == Kind::kNothing || option.value.kind == Kind::kText) continue;
      values += "    " + Pattern(command, option) + ") values=(" + WordFor(option.value.kind) +
                " '" + Joined(WordsOf(option)) + "') ;;\n";
    }
  }
  std::string begin = kBashBegin;
  begin.replace(begin.find("@JOBS@"), 6, kListJobs);
  return begin + "_spillway_commands='" + Joined(names) + " --help --version'\n\n" +
         "_spillway_words() {\n  case $1 in\n" + words + "  esac\n}\n\n" +
         "_spillway_takes_value() {\n  case \"$1 $2\" in\n" + takers + "  esac\n  return 1\n}\n\n" +
         "_spillway_values() {\n  case \"$1 $2\" in\n" + values + "  esac\n}\n" + kFunction;
}

}  // namespace spillway::cli
