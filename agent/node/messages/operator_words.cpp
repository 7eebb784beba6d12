#include "agent/node/messages/operator_words.h"

namespace spillway::agent {
namespace {

void AddNumber(const char* key, int64_t value, int64_t unchanged, std::string& line) {
  if (value != unchanged) line += " " + std::string(key) + "=" + std::to_string(value);
}

// An operator's text may contain quotes.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' || c == '\\' ? '?' : c;
  return quoted + "\"";
}

void AddTerms(const protocol::SetBudget& wanted, std::string& line) {
  line += " job=" + std::string(wanted.job.view());
  AddNumber("limit_bytes", wanted.limit_bytes, protocol::kUnchanged, line);
  AddNumber("guaranteed_bytes", wanted.guaranteed_bytes, protocol::kUnchanged, line);
  AddNumber("host_bytes", wanted.host_bytes, protocol::kUnchanged, line);
  AddNumber("link_permille", wanted.link_permille, -1, line);
  if (wanted.weight > 0) AddNumber("weight", wanted.weight, -1, line);
  AddNumber("priority", wanted.priority_plus_one - 1, -1, line);
}

void AddTerms(const protocol::SetWorkspace& wanted, std::string& line) {
  line += " job=" + std::string(wanted.job.view());
  AddNumber("workspace_limit_bytes", wanted.limit_bytes, protocol::kMostBytes, line);
}

void AddTerms(const protocol::ExpectJob& wanted, std::string& line) {
  line += " job=" + std::string(wanted.job.view());
  if (!wanted.part.view().empty()) line += " part=" + Quoted(wanted.part.view());
  AddNumber("limit_bytes", wanted.limit_bytes, protocol::kUnchanged, line);
  AddNumber("guaranteed_bytes", wanted.guaranteed_bytes, protocol::kUnchanged, line);
  AddNumber("host_bytes", wanted.host_bytes, protocol::kUnchanged, line);
  if (wanted.weight > 0) AddNumber("weight", wanted.weight, -1, line);
  AddNumber("priority", wanted.priority_plus_one - 1, -1, line);
}

void AddTerms(const protocol::OpenListener& wanted, std::string& line) {
  line += " allocation=" + Quoted(wanted.allocation.view());
  if (!wanted.job.view().empty()) line += " job=" + Quoted(wanted.job.view());
  AddNumber("limit_bytes", wanted.limit_bytes, protocol::kUnchanged, line);
  AddNumber("host_bytes", wanted.host_bytes, protocol::kUnchanged, line);
}

}  // namespace

const char* NameOf(protocol::Outcome outcome) {
  constexpr const char* names[] = {"?", "done", "would_be_done", "refused", "unknown_job"};
  return names[static_cast<size_t>(outcome)];
}

std::string MethodOf(const protocol::Message& message) {
  constexpr const char* questions[] = {"?", "status", "jobs", "job", "config"};
  constexpr const char* actions[] = {"?", "drain", "undrain", "reload", "log_level"};
  if (const auto* ask = std::get_if<protocol::Ask>(&message))
    return questions[static_cast<size_t>(ask->question)];
  if (const auto* control = std::get_if<protocol::Control>(&message))
    return actions[static_cast<size_t>(control->action)];
  if (std::holds_alternative<protocol::ExpectJob>(message)) return "expect_job";
  if (std::holds_alternative<protocol::ForgetJob>(message)) return "forget_job";
  if (std::holds_alternative<protocol::SetWorkspace>(message)) return "set_workspace";
  if (std::holds_alternative<protocol::OpenListener>(message)) return "open_listener";
  if (std::holds_alternative<protocol::CloseListener>(message)) return "close_listener";
  return std::holds_alternative<protocol::SetBudget>(message) ? "set_budget" : "";
}

std::string LineOf(uid_t uid, pid_t pid, const protocol::Message& message,
                   const protocol::Done& done) {
  std::string line = "operator uid=" + std::to_string(uid) + " pid=" + std::to_string(pid) +
                     " request=" + MethodOf(message);
  if (const auto* wanted = std::get_if<protocol::SetBudget>(&message)) AddTerms(*wanted, line);
  if (const auto* wanted = std::get_if<protocol::SetWorkspace>(&message)) AddTerms(*wanted, line);
  if (const auto* wanted = std::get_if<protocol::ExpectJob>(&message)) AddTerms(*wanted, line);
  if (const auto* forgotten = std::get_if<protocol::ForgetJob>(&message))
    AddTerms({.job = forgotten->job, .part = forgotten->part}, line);
  if (const auto* wanted = std::get_if<protocol::OpenListener>(&message)) AddTerms(*wanted, line);
  if (const auto* closed = std::get_if<protocol::CloseListener>(&message))
    AddTerms(protocol::OpenListener{.allocation = closed->allocation}, line);
  const auto* control = std::get_if<protocol::Control>(&message);
  if (control != nullptr && !control->value.view().empty())
    line += " value=" + Quoted(control->value.view());
  line += std::string(" outcome=") + NameOf(done.outcome);
  return done.text.view().empty() ? line : line + " why=" + Quoted(done.text.view());
}

}  // namespace spillway::agent
