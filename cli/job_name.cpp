#include "cli/job_name.h"

#include <algorithm>
#include <string_view>

#include "cli/failure.h"
#include "cli/json_value.h"

namespace spillway::cli {
namespace {

// Containers' names end in so many digits of an id, and may be split though all be decimal.
constexpr size_t kIdDigits = 12;

bool IsDecimal(char letter) { return letter >= '0' && letter <= '9'; }

bool SplitsANumber(std::string_view name, size_t at) {
  if (at == 0 || at >= name.size() || !IsDecimal(name[at - 1]) || !IsDecimal(name[at]))
    return false;
  size_t begin = at, end = at;
  while (begin > 0 && name[begin - 1] != '-') --begin;
  while (end < name.size() && name[end] != '-') ++end;
  const std::string_view word = name.substr(begin, end - begin);
  return word.size() < kIdDigits && std::all_of(word.begin(), word.end(), IsDecimal);
}

bool IsPartOf(std::string_view written, std::string_view name) {
  if (written.empty() || written.size() > name.size()) return false;
  const bool begins = name.starts_with(written) && !SplitsANumber(name, written.size());
  return begins || (name.ends_with(written) && !SplitsANumber(name, name.size() - written.size()));
}

std::string ListOf(const std::vector<std::string>& names) {
  constexpr size_t kListed = 8;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i)
    list += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kListed ? list + " and " + std::to_string(names.size() - kListed) + " more"
                                : list;
}

}  // namespace

std::string WholeJobName(const std::string& written, const std::vector<std::string>& names) {
  std::vector<std::string> candidates;
  for (const std::string& name : names) {
    if (name == written) return written;
    if (IsPartOf(written, name)) candidates.push_back(name);
  }
  if (candidates.empty()) return written;
  if (candidates.size() > 1)
    throw Failure(kExitRefusedByAgent, "'" + written + "' is part of several jobs' names",
                  ListOf(candidates), "write more of the name; see: spillway jobs");
  return candidates.front();
}

std::string WholeJobName(const std::string& written, AgentClient& agent) {
  protocol::Ask ask;
  ask.question = protocol::Question::kJobs;
  ask.form = protocol::Form::kJson;
  const std::optional<JsonValue> answer = JsonValue::Parse(agent.Ask(ask));
  if (!answer) return written;
  std::vector<std::string> names;
  for (const JsonValue& job : (*answer)["jobs"].entries()) names.push_back(job["job"].text());
  return WholeJobName(written, names);
}

}  // namespace spillway::cli
