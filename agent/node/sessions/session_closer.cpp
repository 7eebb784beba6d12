#include "agent/node/sessions/session_closer.h"

#include "agent/node/table/job_report.h"

namespace spillway::agent {

void SessionCloser::Refuse(Session& session, const Refusal& refusal, int64_t now_ns) {
  parts_.services->Note("session " + std::to_string(static_cast<uint64_t>(session.id)) +
                        " of process " + std::to_string(session.pid()) +
                        " is closed: " + refusal.reason);
  session.channel->Send(protocol::Error{.code = refusal.code, .reason = refusal.reason});
  CloseChannel(session, now_ns);
}

void SessionCloser::CloseChannel(Session& session, int64_t now_ns) {
  session.channel.reset();
  parts_.plans->Forget(session.id);
  parts_.slabs->StopAsking(session);
  const bool keeps = session.peer->IsAlive() &&
                     (!session.registrations.empty() || parts_.slabs->IsLastWithSlabs(session));
  if (!keeps) return End(session.id, now_ns);
  gone_.push_back({session.id, true});
  session.state = SessionState::kDetached;
}

void SessionCloser::End(SessionId id, int64_t now_ns) {
  gone_.push_back({id, false});
  Forget(id, now_ns);
}

void SessionCloser::EndRegistrations(Session& session, DeviceId device, int64_t now_ns) {
  std::erase_if(session.registrations, [&](const auto& entry) {
    if (entry.second.device != device) return false;
    parts_.links->Leave(entry.second);
    return true;
  });
  if (session.registrations.empty()) End(session.id, now_ns);
}

void SessionCloser::Forget(SessionId id, int64_t now_ns) {
  Session& session = parts_.table->At(id);
  const JobId job_id = session.job;
  parts_.plans->Forget(id);
  if (Job* const job = parts_.table->FindJob(job_id)) LeaveJob(session, *job);
  parts_.users->RemoveSession(UserOf(session), now_ns);
  parts_.delivery->Forget(id);
  parts_.table->Remove(id);
  parts_.jobs->EndIfEmpty(job_id, now_ns);
}

void SessionCloser::LeaveJob(Session& session, Job& job) {
  for (const auto& [number, registration] : session.registrations) {
    const TenantProcess process = ProcessOf(session, registration.device);
    if (parts_.arbiter->BudgetedTo(process) > 0 && !session.is_leaving)
      ++parts_.counters->reclaimed;
    parts_.links->Leave(registration);
    parts_.arbiter->Leave(process);
    parts_.record->Note(session, registration.device);
    AddUsage(registration, job.finished[registration.device]);
  }
  parts_.table->LeaveJob(session);
  for (const auto& [number, registration] : session.registrations)
    parts_.terms->Refresh(job, registration.device);
  parts_.slabs->End(session);
}

void SessionCloser::SayAgentStops() {
  for (auto& [id, session] : parts_.table->sessions()) {
    if (session.channel == nullptr) continue;
    session.channel->Send(protocol::Error{.code = protocol::ErrorCode::kAgentStops,
                                          .reason = "the agent stops; keep what you have"});
  }
}

}  // namespace spillway::agent
