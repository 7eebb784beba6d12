#include "agent/node/messages/operators.h"

#include <unistd.h>

#include <algorithm>

#include "agent/node/messages/operator_words.h"
#include "protocol/bulk.h"

namespace spillway::agent {

using protocol::Done;
using protocol::ErrorCode;
using protocol::Outcome;

namespace {

Done UnknownJob(std::string_view name) {
  return {Outcome::kUnknownJob, "no job " + std::string(name) + " runs here"};
}

// `note` goes with success.
Done DoneUnless(const std::string& refusal, const std::string& note) {
  return refusal.empty() ? Done{Outcome::kDone, note} : Done{Outcome::kRefused, refusal};
}

Outcome SendDone(const Session& session, const Done& done) {
  session.channel->Send(done);
  return done.outcome;
}

}  // namespace

bool Operators::MayChange(const Session& session) const {
  if (session.entrance != Entrance::kAll) return false;
  const uid_t uid = session.uid();
  if (uid == 0 || uid == geteuid()) return true;
  const std::vector<int64_t>& operators = parts_.facts->config.operators;
  return std::find(operators.begin(), operators.end(), static_cast<int64_t>(uid)) !=
         operators.end();
}

std::string Operators::WhyNotToChange(const Session& session) const {
  if (session.entrance != Entrance::kAll)
    return "through this socket, which is for jobs, nobody may change something; operators use "
           "the agent's other socket";
  return "only root, the agent's user and the operators in its configuration may change something";
}

std::optional<Refusal> Operators::Take(Session& session, const protocol::Message& message,
                                       int64_t now_ns) {
  const std::string method = MethodOf(message);
  if (method.empty())
    return Refusal{ErrorCode::kOutOfOrder,
                   std::string(protocol::NameOf(message)) + " is not an operator's to send"};
  const int64_t per_second = parts_.facts->config.limits.messages_per_second;
  if (!parts_.users->TakeQuestion(UserOf(session), now_ns, per_second))
    return Refusal{ErrorCode::kTooFast, "too many questions per second of this user"};
  if (session.channel->IsRead()) session.unread_answers = 0;
  if (session.unread_answers++ >= kMostUnread)
    return Refusal{ErrorCode::kTooFast, "too many answers are unread"};
  const int64_t began_ns = parts_.services->NowNs();
  const Outcome outcome = Answer(session, message, now_ns);
  parts_.counters->api_requests[{method, NameOf(outcome)}].Add(parts_.services->NowNs() - began_ns);
  return std::nullopt;
}

Outcome Operators::Answer(const Session& session, const protocol::Message& message,
                          int64_t now_ns) {
  if (const auto* ask = std::get_if<protocol::Ask>(&message))
    return AnswerQuestion(session, *ask, now_ns);
  std::optional<protocol::Message> answer;
  const Done done = DoIfAllowed(session, message, &answer);
  // A manager forgets every job that begins or ends, expected or not.
  const bool is_no_news =
      done.outcome == Outcome::kUnknownJob && std::holds_alternative<protocol::ForgetJob>(message);
  if (!is_no_news && (MayChange(session) || parts_.users->TakeLogLine(UserOf(session), now_ns)))
    parts_.services->Inform(LineOf(session.uid(), session.pid(), message, done));
  if (!answer) return SendDone(session, done);
  session.channel->Send(*answer);
  return done.outcome;
}

Outcome Operators::AnswerQuestion(const Session& session, const protocol::Ask& ask,
                                  int64_t now_ns) {
  const std::string_view name = ask.job.view();
  if (ask.question == protocol::Question::kConfig && session.entrance != Entrance::kAll)
    return SendDone(session, {Outcome::kRefused, "jobs do not see the agent's configuration"});
  const NodeReport report = ReportFor(session, now_ns);
  const bool is_known = std::any_of(report.jobs.begin(), report.jobs.end(),
                                    [&](const JobReport& job) { return job.name == name; });
  if (ask.question == protocol::Question::kJob && !is_known)
    return SendDone(session, UnknownJob(name));
  const std::string page = parts_.services->PageFor(ask, report);
  const base::UniqueFd file = protocol::SealedCopy(page);
  if (!file)
    return SendDone(session,
                    {Outcome::kRefused, "the agent has no memory or files left for the answer"});
  session.channel->Send(protocol::Document{1, page.size()}, {{file.get()}});
  return Outcome::kDone;
}

// A container's user learns nothing of other tenants.
NodeReport Operators::ReportFor(const Session& session, int64_t now_ns) const {
  NodeReport report = parts_.reporter->Report(now_ns);
  if (session.entrance == Entrance::kAll) return report;
  const std::optional<JobIdentity> asking = parts_.services->IdentityOf(*session.peer, 0);
  std::erase_if(report.jobs, [&](const JobReport& job) {
    const bool is_own = asking && job.source == asking->source && job.source_id == asking->id;
    return !is_own || job.name != asking->name;
  });
  report.owners.clear();
  report.unknown_devices.clear();
  report.allocations.clear();
  report.waiting_pods.clear();
  for (DeviceReport& device : report.devices) {
    device.unmanaged_bytes.reset();
    device.unmanaged.clear();
  }
  return report;
}

Done Operators::DoIfAllowed(const Session& session, const protocol::Message& message,
                            std::optional<protocol::Message>* answer) {
  if (!MayChange(session)) return {Outcome::kRefused, WhyNotToChange(session)};
  if (const auto* wanted = std::get_if<protocol::SetBudget>(&message)) return Do(*wanted);
  if (const auto* wanted = std::get_if<protocol::SetWorkspace>(&message)) return Do(*wanted);
  if (const auto* wanted = std::get_if<protocol::ExpectJob>(&message)) return Do(*wanted);
  if (const auto* wanted = std::get_if<protocol::ForgetJob>(&message)) return Do(*wanted, answer);
  if (const auto* wanted = std::get_if<protocol::OpenListener>(&message))
    return Do(*wanted, answer);
  if (const auto* wanted = std::get_if<protocol::CloseListener>(&message)) return Do(*wanted);
  return Do(std::get<protocol::Control>(message));
}

// Empty: the next agent will know it too.
std::string Operators::WhyNotSaved() {
  return parts_.services->SaveState().Annotate("the next agent will not know it").text();
}

Done Operators::Do(const protocol::SetBudget& wanted) {
  Job* const job = parts_.table->FindJobByName(wanted.job.view());
  if (job == nullptr) return UnknownJob(wanted.job.view());
  if (wanted.device >= 0)
    return {Outcome::kRefused, "a budget is set on all devices of a job at once"};
  if (wanted.limit_bytes == 0)
    return {Outcome::kRefused,
            "a job needs some memory to compute in; `drain` lets no new job begin"};
  const base::Status status = parts_.terms->Change(*job, wanted);
  if (!status.ok()) return {Outcome::kRefused, status.text()};
  return wanted.dry_run ? Done{Outcome::kWouldBeDone, ""} : Done{Outcome::kDone, WhyNotSaved()};
}

Done Operators::Do(const protocol::SetWorkspace& wanted) {
  Job* const job = parts_.table->FindJobByName(wanted.job.view());
  if (job == nullptr) return UnknownJob(wanted.job.view());
  if (wanted.dry_run) return {Outcome::kWouldBeDone, ""};
  parts_.terms->SetWorkspaceLimit(*job, wanted.limit_bytes);
  return {Outcome::kDone, WhyNotSaved()};
}

Done Operators::Do(const protocol::ExpectJob& wanted) {
  const bool is_part = !wanted.part.view().empty();
  if (is_part && parts_.expected->TermsOf(std::string(wanted.job.view())) == nullptr)
    return {Outcome::kUnknownJob, "no job " + std::string(wanted.job.view()) + " is expected"};
  const base::Status status = parts_.expected->Expect(wanted);
  if (!status.ok()) return {Outcome::kRefused, status.text()};
  RefreshTermsOf(std::string(wanted.job.view()));
  return {Outcome::kDone, WhyNotSaved()};
}

Done Operators::Do(const protocol::ForgetJob& wanted, std::optional<protocol::Message>* answer) {
  const std::string key(wanted.job.view()), part(wanted.part.view());
  if (part.empty()) {
    parts_.allocations->Forget(key);
    if (const auto totals = parts_.expected->Forget(key)) *answer = *totals;
  }
  const bool is_known = part.empty() ? answer->has_value() : parts_.expected->ForgetPart(key, part);
  if (!is_known) return {Outcome::kUnknownJob, key + " is not expected here"};
  RefreshTermsOf(key);
  return {Outcome::kDone, WhyNotSaved()};
}

// Containers would wait for a socket that the next agent does not make, so it must know of it.
Done Operators::Do(const protocol::OpenListener& wanted, std::optional<protocol::Message>* answer) {
  const std::string name(wanted.allocation.view());
  const bool is_new = !parts_.allocations->IsOpen(name);
  if (base::Status opened = parts_.allocations->Open(wanted); !opened.ok())
    return {Outcome::kRefused, opened.text()};
  const base::Result<std::string> socket = parts_.services->OpenListener(name);
  const base::Status saved = socket ? parts_.services->SaveState() : socket.status();
  if (!saved.ok()) {
    if (is_new && CloseAllocation(name)) static_cast<void>(parts_.services->CloseListener(name));
    return {Outcome::kRefused, saved.text()};
  }
  for (const std::string& job : parts_.allocations->JobsOf(name)) RefreshTermsOf(job);
  *answer = protocol::ListenerPlace{*socket};
  return {Outcome::kDone, ""};
}

// The socket goes first: should the agent end before it has saved, the manager closes it again.
Done Operators::Do(const protocol::CloseListener& wanted) {
  const std::string name(wanted.allocation.view());
  const std::vector<std::string> jobs = parts_.allocations->JobsOf(name);
  if (!CloseAllocation(name))
    return {Outcome::kUnknownJob, "no allocation " + name + " is open here"};
  const std::string left = parts_.services->CloseListener(name).text();
  for (const std::string& job : jobs) RefreshTermsOf(job);
  const std::string not_saved = WhyNotSaved();
  return {Outcome::kDone, not_saved.empty() ? left : not_saved};
}

bool Operators::CloseAllocation(const std::string& name) {
  return parts_.allocations->Close(name, [&](const std::string& key) -> std::optional<JobId> {
    const Job* const job = parts_.table->FindJobByKey(key);
    return job == nullptr ? std::nullopt : std::optional(job->id);
  });
}

void Operators::RefreshTermsOf(const std::string& key) {
  if (const Job* const job = parts_.table->FindJobByKey(key)) parts_.terms->Refresh(*job);
}

Done Operators::Do(const protocol::Control& control) {
  switch (control.action) {
    case protocol::Action::kDrain:
    case protocol::Action::kUndrain:
      parts_.terms->SetDraining(control.action == protocol::Action::kDrain);
      return {Outcome::kDone, WhyNotSaved()};
    case protocol::Action::kReload: {
      const std::string refusal = parts_.services->Reload().text();
      return DoneUnless(refusal, refusal.empty() ? parts_.services->WhatNeedsRestart() : "");
    }
    case protocol::Action::kLogLevel:
      return DoneUnless(parts_.services->SetLogLevel(std::string(control.value.view())).text(), "");
  }
  return {Outcome::kDone, ""};
}

}  // namespace spillway::agent
