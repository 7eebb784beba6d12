// Limits on connections, and the sessions that are closed for new ones.
#include <algorithm>
#include <utility>

#include "agent/node/node.h"

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

// Note [A crowd of sessions]
// A session that sends no Hello ends after kHelloNs. At a limit, the oldest session that holds
// nothing is closed: first those without Hello, then operators, then jobs without a device. At a
// user's limit, that user loses one. At the node's limit, the user with most sessions loses one, if
// it has more than the newcomer's user. So a crowd of one user keeps out nobody, not even that
// user.
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
// Limits log lines that any user can cause: jobs that begin and end, refused requests. Lines left
// out are counted and reported.
bool Node::MayLog(uid_t uid) {
  constexpr int64_t lines_per_second = 5;
  User& user = users_[uid];
  if (!user.lines.Take(settled_ns_, lines_per_second)) return ++user.lines_left_out, false;
  if (const int64_t left_out = std::exchange(user.lines_left_out, 0); left_out > 0)
    services_->Warn("user " + std::to_string(uid) + " caused " + std::to_string(left_out) +
                    " lines too many, which are left out");
  return true;
}

// Closes a session of `user`, or of the user with most sessions, which has `at_least` so many.
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
