// Who may connect when many have, and who makes room.
#include <algorithm>
#include <utility>

#include "agent/node/node.h"

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

// Note [A crowd of sessions]
// A session that says nothing costs others nothing: one that has not said Hello ends after
// kHelloNs, and where a limit is reached the oldest of those that hold nothing makes room: first
// those without Hello, then operators (who ask and go), then jobs without a device. At a user's
// limit it is one of that user; at the node's it is one of the user that has most sessions, if
// those are more than the newcomer's user has. So one user's crowd keeps out nobody else, and not
// even that user.
constexpr int64_t kHelloNs = 5'000'000'000;
constexpr int64_t kCheckNs = 1'000'000'000;

}  // namespace

std::optional<protocol::Error> Node::WhyNotConnected(const Peer& peer, int64_t now_ns) {
  User& user = users_[peer.uid()];
  const ConnectionLimits& limits = config_.limits;
  if (!user.connections.Take(now_ns, limits.connections_per_second_per_user))
    return protocol::Error{.code = ErrorCode::kTooFast,
                           .reason = "too many connections per second"};
  if (user.sessions >= limits.sessions_per_user && !MakeRoom(peer.uid(), 1))
    return protocol::Error{.code = ErrorCode::kTooManySessions,
                           .reason = "this user has too many sessions"};
  const bool is_full = static_cast<int64_t>(sessions_.size()) >= limits.sessions;
  if (is_full && !MakeRoom(peer.uid(), 1) && !MakeRoom(std::nullopt, user.sessions + 1))
    return protocol::Error{.code = ErrorCode::kTooManySessions,
                           .reason = "the node has too many sessions"};
  return std::nullopt;
}

// Note [Lines of users]
// What anybody can cause is logged at most so often for each user: jobs that begin and end,
// requests that are refused. What was left out is counted and said.
bool Node::MayLog(uid_t uid) {
  constexpr int64_t lines_per_second = 5;
  User& user = users_[uid];
  if (!user.lines.Take(settled_ns_, lines_per_second)) return ++user.lines_left_out, false;
  if (const int64_t left_out = std::exchange(user.lines_left_out, 0); left_out > 0)
    services_->Warn("user " + std::to_string(uid) + " caused " + std::to_string(left_out) +
                    " lines too many, which are left out");
  return true;
}

// Of that user, or of the one that has most sessions, and so many at least.
bool Node::MakeRoom(std::optional<uid_t> user, int64_t at_least) {
  const auto rank = [this](const Session& session) {
    if (session.state == State::kNew) return 0;
    if (session.state == State::kOperator) return 1;
    return session.state == State::kJob && session.registrations.empty() &&
                   !IsLastWithSlabs(session)
               ? 2
               : 3;
  };
  Session* least = nullptr;
  int64_t most_sessions = at_least - 1;
  int least_rank = 3;
  for (auto& [id, session] : sessions_) {
    const uid_t uid = session.peer->uid();
    const int64_t count = users_[uid].sessions;
    if (user ? uid != *user : count < at_least) continue;
    const int its_rank = rank(session);
    const bool is_better =
        count > most_sessions || (count == most_sessions && its_rank < least_rank);
    if (its_rank == 3 || !(user ? its_rank < least_rank : is_better)) continue;
    least = &session;
    least_rank = its_rank;
    most_sessions = count;
  }
  if (least == nullptr) return false;
  Refuse(*least, ErrorCode::kTooManySessions, "others need its place");
  return true;
}

void Node::EndSilent(int64_t now_ns) {
  if (now_ns < next_silence_check_ns_) return;
  next_silence_check_ns_ = now_ns + kCheckNs;
  std::vector<SessionId> silent;
  for (const auto& [id, session] : sessions_) {
    if (session.state == State::kNew && now_ns - session.since_ns >= kHelloNs) silent.push_back(id);
  }
  for (const SessionId id : silent) {
    if (Session* const session = Find(id))
      Refuse(*session, ErrorCode::kOutOfOrder, "Hello did not come in time");
  }
}

}  // namespace spillway::agent
