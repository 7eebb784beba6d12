#include "agent/node/sessions/session_opener.h"

#include <algorithm>

namespace spillway::agent {

using protocol::ErrorCode;

std::optional<SessionId> SessionOpener::Connect(std::unique_ptr<protocol::Channel> channel,
                                                std::unique_ptr<Peer> peer, int64_t now_ns,
                                                Entrance entrance) {
  ++parts_.counters->connections;
  const ConnectionPolicy::Verdict verdict = policy_.Admit({peer->uid(), entrance}, now_ns);
  for (SessionId id : verdict.to_close)
    parts_.closer->Refuse(parts_.table->At(id),
                          {ErrorCode::kTooManySessions, "others need its place"}, now_ns);
  if (verdict.refusal) {
    ++parts_.counters->refused_connections;
    channel->Send(
        protocol::Error{.code = verdict.refusal->code, .reason = verdict.refusal->reason});
    return std::nullopt;
  }
  parts_.users->AddSession({peer->uid(), entrance});
  Session& session = parts_.table->Add(std::move(channel), std::move(peer), now_ns);
  session.entrance = entrance;
  return session.id;
}

std::optional<Refusal> SessionOpener::Greet(Session& session, const protocol::Message& message,
                                            int64_t now_ns) {
  const auto* const hello = std::get_if<protocol::Hello>(&message);
  if (hello == nullptr) return Refusal{ErrorCode::kOutOfOrder, "Hello comes first"};
  if (hello->newest_version < protocol::kOldestVersion ||
      hello->oldest_version > protocol::kNewestVersion)
    return Refusal{ErrorCode::kVersion, "no common version"};
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

std::optional<Refusal> SessionOpener::BeginJob(Session& session, const protocol::Hello& hello,
                                               int64_t now_ns) {
  const std::optional<JobIdentity> identity =
      parts_.services->IdentityOf(*session.peer, hello.leader_pid);
  if (!identity) return Refusal{ErrorCode::kOutOfOrder, "the process cannot be identified"};
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
