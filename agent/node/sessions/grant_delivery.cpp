#include "agent/node/sessions/grant_delivery.h"

#include <algorithm>

namespace spillway::agent {

namespace {

constexpr uint16_t kWorkspaceVersion = 8;

bool IsRevocation(RulingReason reason) {
  return reason == RulingReason::kRevoked || reason == RulingReason::kPreempted;
}

protocol::AdmissionState StateOf(const AdmissionDecision& decision) {
  switch (decision.state) {
    case TenancyState::kAdmitted:
      return protocol::AdmissionState::kAdmitted;
    case TenancyState::kQueued:
      return protocol::AdmissionState::kQueued;
    case TenancyState::kRejected:
      break;
  }
  return protocol::AdmissionState::kRejected;
}

void Count(const AdmissionDecision& decision, NodeCounters& counters) {
  ++(decision.state == TenancyState::kAdmitted ? counters.admitted
     : decision.state == TenancyState::kQueued ? counters.queued
                                               : counters.rejected);
}

// The last one counts if too many wait.
void Add(const protocol::Admission& admission, size_t most,
         std::vector<protocol::Admission>& unsent) {
  if (unsent.size() < most)
    unsent.push_back(admission);
  else
    unsent.back() = admission;
}

protocol::Grant MessageOf(const GrantDecision& decision, uint32_t number, int64_t now_ns) {
  protocol::Grant grant;
  grant.device = number;
  grant.serial = decision.serial;
  grant.budget_bytes = decision.memory_bytes;
  grant.host_bytes = decision.host_bytes;
  grant.link_permille = decision.link_permille;
  grant.deadline_ms = static_cast<uint32_t>(
      std::clamp<int64_t>((decision.deadline_ns - now_ns) / 1'000'000, 0, 3'600'000));
  grant.reason = static_cast<protocol::GrantReason>(static_cast<int>(decision.reason) + 1);
  return grant;
}

}  // namespace

void GrantDelivery::Deliver(const AdmissionDecision& decision, int64_t now_ns) {
  Count(decision, counters_);
  Job* const job = table_.FindJob(decision.job);
  if (job == nullptr) return;
  if (decision.state == TenancyState::kAdmitted) {
    if (const auto asked = job->asked_ns.extract(decision.device))
      counters_.admission_waits.Add(std::max<int64_t>(now_ns - asked.mapped(), 0));
  }
  for (SessionId id : job->sessions) {
    Session& session = table_.At(id);
    for (const auto& [number, registration] : session.registrations) {
      if (registration.device != decision.device) continue;
      Add({number, StateOf(decision), decision.position, decision.reason}, kMostUnread,
          session.unsent_admissions);
    }
    Send(session, now_ns);
  }
}

void GrantDelivery::Deliver(const GrantDecision& decision, int64_t now_ns) {
  ++counters_.grants;
  if (IsRevocation(decision.reason)) ++counters_.revocations;
  Session* const session = table_.Find(decision.process.session);
  if (session == nullptr) return;
  for (auto& [number, registration] : session->registrations) {
    if (registration.device == decision.process.device) registration.unsent = decision;
  }
  Send(*session, now_ns);
}

bool GrantDelivery::SendWorkspaceLimit(Session& session, uint32_t number,
                                       Registration& registration, int64_t limit_bytes) {
  const protocol::WorkspaceGrant grant{number, std::min(limit_bytes, protocol::kMostBytes)};
  int64_t& sent_bytes = registration.sent_workspace_limit_bytes;
  if (session.version < kWorkspaceVersion || sent_bytes == grant.limit_bytes) return true;
  if (session.channel->Send(grant) != protocol::Sent::kSent) return false;
  sent_bytes = grant.limit_bytes;
  return true;
}

void GrantDelivery::SendGrant(Session& session, uint32_t number, Registration& registration,
                              int64_t now_ns) {
  if (!registration.unsent || registration.unread.size() >= kMostUnread) return;
  const GrantDecision& decision = *registration.unsent;
  if (!backstop_.Allows(session, registration, decision, now_ns)) return;
  if (!SendWorkspaceLimit(session, number, registration, decision.workspace_limit_bytes)) return;
  if (session.channel->Send(MessageOf(decision, number, now_ns)) != protocol::Sent::kSent) return;
  registration.unread.push_back(decision.serial);
  registration.sent_memory_bytes = decision.memory_bytes;
  claims_.AwaitUse(session, number, registration, now_ns);
  slabs_.NoteGrant(session, registration, decision.host_bytes);
  links_.NoteGrant(session, number, registration, decision.link_permille);
  registration.unsent.reset();
}

void GrantDelivery::Send(Session& session, int64_t now_ns) {
  waiting_.insert(session.id);
  if (session.channel == nullptr) return;
  while (!session.unsent_admissions.empty()) {
    if (session.channel->Send(session.unsent_admissions.front()) != protocol::Sent::kSent) return;
    session.unsent_admissions.erase(session.unsent_admissions.begin());
  }
  bool waits = false;
  for (auto& [number, registration] : session.registrations) {
    SendGrant(session, number, registration, now_ns);
    waits = waits || registration.unsent;
  }
  if (!waits) waiting_.erase(session.id);
}

void GrantDelivery::SendAll(int64_t now_ns) {
  for (SessionId id : std::set<SessionId>(waiting_)) Send(table_.At(id), now_ns);
}

bool GrantDelivery::WantsRetry() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [this](SessionId id) {
    const Session& session = table_.At(id);
    if (!session.unsent_admissions.empty()) return true;
    if (session.channel == nullptr) return false;
    return std::any_of(session.registrations.begin(), session.registrations.end(),
                       [](const auto& entry) {
                         return entry.second.unsent && entry.second.unread.size() < kMostUnread;
                       });
  });
}

}  // namespace spillway::agent
