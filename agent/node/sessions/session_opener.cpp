#include "agent/node/sessions/session_opener.h"

#include <algorithm>

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

Refusal NotIdentified() { return {ErrorCode::kOutOfOrder, "the process cannot be identified"}; }

}  // namespace

std::optional<SessionId> SessionOpener::Connect(std::unique_ptr<protocol::Channel> channel,
                                                std::unique_ptr<Peer> peer, int64_t now_ns,
                                                Entrance entrance, const std::string& allocation) {
  ++parts_.counters->connections;
  const User user(peer->uid(), entrance, allocation);
  const ConnectionPolicy::Verdict verdict = policy_.Admit(user, now_ns);
  for (SessionId id : verdict.to_close)
    parts_.closer->Refuse(parts_.table->At(id),
                          {ErrorCode::kTooManySessions, "others need its place"}, now_ns);
  if (verdict.refusal) {
    ++parts_.counters->refused_connections;
    channel->Send(
        protocol::Error{.code = verdict.refusal->code, .reason = verdict.refusal->reason});
    return std::nullopt;
  }
  parts_.users->AddSession(user);
  Session& session = parts_.table->Add(std::move(channel), std::move(peer), now_ns);
  session.entrance = entrance;
  session.allocation = allocation;
  return session.id;
}

std::optional<Refusal> SessionOpener::Greet(Session& session, const protocol::Message& message,
                                            int64_t now_ns) {
  const auto* const hello = std::get_if<protocol::Hello>(&message);
  if (hello == nullptr) return Refusal{ErrorCode::kOutOfOrder, "Hello comes first"};
  if (hello->newest_version < protocol::kOldestVersion ||
      hello->oldest_version > protocol::kNewestVersion)
    return Refusal{ErrorCode::kVersion, "no common version"};
  if (session.entrance == Entrance::kAllocation) {
    if (std::optional<Refusal> refusal = EnterAllocation(session, *hello, now_ns)) return refusal;
  }
  session.version = std::min(hello->newest_version, protocol::kNewestVersion);
  session.channel->SetVersion(session.version);
  session.state = SessionState::kOperator;
  protocol::Welcome welcome;
  welcome.version = session.version;
  welcome.agent_instance = parts_.facts->instance;
  welcome.session = static_cast<uint64_t>(session.id);
  session.usage_interval_ms = parts_.facts->config.usage_interval_ms;
  welcome.usage_interval_ms = static_cast<uint32_t>(session.usage_interval_ms);
  if (hello->role == protocol::Role::kJob) {
    if (std::optional<Refusal> refusal = BeginJob(session, *hello, now_ns)) return refusal;
    welcome.job = parts_.table->JobOf(session).name;
  }
  session.channel->Send(welcome);
  return std::nullopt;
}

// An operator's question takes no allocation.
std::optional<Refusal> SessionOpener::EnterAllocation(const Session& session,
                                                      const protocol::Hello& hello,
                                                      int64_t now_ns) {
  const std::optional<JobIdentity> identity =
      parts_.services->IdentityOf(*session.peer, hello.leader_pid);
  if (!identity) return NotIdentified();
  const std::string& name = session.allocation;
  std::optional<Refusal> refusal = hello.role == protocol::Role::kJob
                                       ? parts_.allocations->Enter(name, *identity)
                                       : parts_.allocations->WhyNot(name, *identity);
  if (refusal && parts_.allocations->NoteRefused(name, *identity, now_ns) &&
      parts_.users->TakeLogLine(UserOf(session), now_ns))
    parts_.services->Warn(identity->name + " is refused at the socket of allocation " + name +
                          ": " + refusal->reason);
  return refusal;
}

std::optional<Refusal> SessionOpener::BeginJob(Session& session, const protocol::Hello& hello,
                                               int64_t now_ns) {
  const std::optional<JobIdentity> identity =
      parts_.services->IdentityOf(*session.peer, hello.leader_pid);
  if (!identity) return NotIdentified();
  Job& job = parts_.jobs->JobFor(*identity, UserOf(session), now_ns);
  parts_.table->Enter(session, job);
  session.state = SessionState::kJob;
  session.part = identity->part;
  session.group = identity->group;
  for (SessionId kept : parts_.slabs->KeptFor(session)) parts_.closer->End(kept, now_ns);
  parts_.slabs->Begin(session);
  return std::nullopt;
}

void SessionOpener::RefuseSilent(int64_t now_ns) {
  for (const SessionId id : policy_.TakeSilent(now_ns))
    parts_.closer->Refuse(parts_.table->At(id),
                          {ErrorCode::kOutOfOrder, "Hello did not come in time"}, now_ns);
}

}  // namespace spillway::agent
