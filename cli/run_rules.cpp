#include "cli/run_rules.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/environment.h"
#include "base/file.h"
#include "base/lines.h"
#include "cli/agent_client.h"
#include "cli/failure.h"

namespace spillway::cli {
namespace {

Failure BadRules(const std::string& where, const std::string& why) {
  return {kExitRefused, "the rules of this machine cannot be followed: " + where, why,
          "ask its administrator; the file may say: agent = \"required\" or \"optional\", socket = "
          "\"PATH\""};
}

std::string_view Trimmed(std::string_view text) { return base::Trimmed(text, " \t\r"); }

bool TakeQuoted(std::string_view written, std::string* value) {
  const size_t end = written.find('"', 1);
  if (!written.starts_with('"') || end == written.npos) return false;
  *value = written.substr(1, end - 1);
  const std::string_view rest = Trimmed(written.substr(end + 1));
  return value->find('\\') == value->npos && (rest.empty() || rest.starts_with('#'));
}

void TakeRule(std::string_view line, const std::string& where, RunRules& rules) {
  const size_t equals = line.find('=');
  const std::string key(Trimmed(line.substr(0, equals)));
  std::string value;
  if (equals == line.npos || !TakeQuoted(Trimmed(line.substr(equals + 1)), &value))
    throw BadRules(where, "'" + std::string(line) + "' is not of the form KEY = \"VALUE\"");
  if (key == "socket" && !value.empty()) {
    rules.socket = value;
  } else if (key == "agent" && (value == "required" || value == "optional")) {
    rules.agent_is_required = value == "required";
  } else {
    throw BadRules(where, "there is no " + key + " = \"" + value + "\"");
  }
}

bool IsAddressOf(const RunRules& rules, const std::string& address) {
  const std::string only = rules.socket.empty() ? environment::kDefaultSocket : rules.socket;
  return address.empty() || address == only;
}

}  // namespace

RunRules ParseRunRules(std::string_view text, const std::string& path) {
  RunRules rules;
  for (int number = 1; const auto written = base::TakeLine(text); ++number) {
    const std::string_view line = Trimmed(*written);
    if (!line.empty() && !line.starts_with('#'))
      TakeRule(line, path + ":" + std::to_string(number), rules);
  }
  return rules;
}

RunRules ReadRunRules(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  if (facts.st_mode != 0 && !S_ISREG(facts.st_mode)) throw BadRules(path, "it is no file");
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text) throw BadRules(path, text.error().why);
  return ParseRunRules(*text, path);
}

RunOptions UnderRules(RunOptions options, const RunRules& rules, const std::string& path) {
  if (!rules.agent_is_required) return options;
  const Failure evades(
      kExitRefused, options.off ? "--off is not allowed here" : "another agent is not allowed here",
      "jobs on this machine must follow its agent, by " + path,
      options.off ? "leave out --off" : "leave out the agent's socket");
  if (options.off || !IsAddressOf(rules, options.agent)) throw evades;
  options.requires_agent = true;
  options.agent = rules.socket.empty() ? environment::kDefaultSocket : rules.socket;
  return options;
}

}  // namespace spillway::cli
