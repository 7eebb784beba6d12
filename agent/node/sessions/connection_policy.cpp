#include "agent/node/sessions/connection_policy.h"

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

constexpr int64_t kHelloNs = 5'000'000'000;
constexpr int64_t kSilenceCheckNs = 1'000'000'000;

constexpr int kHolds = 3;  // the rank of sessions that are kept

// Root of a container can become many users. A sixteenth of the places is not for them.
int64_t MostSessions(const ConnectionLimits& limits, Entrance entrance) {
  return limits.sessions - (entrance == Entrance::kAll ? 0 : limits.sessions / 16);
}

}  // namespace

ConnectionPolicy::Verdict ConnectionPolicy::Admit(const User& user, int64_t now_ns) {
  const ConnectionLimits& limits = facts_.config.limits;
  if (!users_.TakeConnection(user, now_ns, limits.connections_per_second_per_user))
    return {Refusal{ErrorCode::kTooFast, "too many connections per second"}};
  Verdict verdict;
  int64_t sessions = users_.SessionsOf(user);
  if (sessions >= limits.sessions_per_user) {
    const std::optional<SessionId> own = LeastOf(user, {});
    if (!own) return {Refusal{ErrorCode::kTooManySessions, "this user has too many sessions"}};
    verdict.to_close.insert(*own);
    --sessions;
  }
  const size_t all = table_.sessions().size() - verdict.to_close.size();
  if (static_cast<int64_t>(all) < MostSessions(limits, user.entrance)) return verdict;
  std::optional<SessionId> place = LeastOf(user, verdict.to_close);
  if (!place) place = LeastOfLargest(user, sessions + 1);
  if (place)
    verdict.to_close.insert(*place);
  else
    verdict.refusal = {ErrorCode::kTooManySessions, "the node has too many sessions"};
  return verdict;
}

int ConnectionPolicy::RankOf(const Session& session) const {
  if (session.state == SessionState::kNew) return 0;
  if (session.state == SessionState::kOperator) return 1;
  const bool holds_nothing = session.state == SessionState::kJob && session.registrations.empty() &&
                             !slabs_.IsLastWithSlabs(session);
  return holds_nothing ? 2 : kHolds;
}

std::optional<SessionId> ConnectionPolicy::LeastOf(const User& user,
                                                   const std::set<SessionId>& except) const {
  std::optional<SessionId> least;
  int least_rank = kHolds;
  for (const auto& [id, session] : table_.sessions()) {
    if (UserOf(session) != user || except.count(id) != 0) continue;
    const int rank = RankOf(session);
    if (rank >= least_rank) continue;
    least = id;
    least_rank = rank;
  }
  return least;
}

// Of the user with most sessions that has one to lose.
std::optional<SessionId> ConnectionPolicy::LeastOfLargest(const User& newcomer,
                                                          int64_t at_least) const {
  std::optional<SessionId> least;
  int64_t most_sessions = at_least - 1;
  int least_rank = kHolds;
  for (const auto& [id, session] : table_.sessions()) {
    const int64_t count = users_.SessionsOf(UserOf(session));
    if (UserOf(session) == newcomer || count < at_least) continue;
    const int rank = RankOf(session);
    const bool is_better = count > most_sessions || (count == most_sessions && rank < least_rank);
    if (rank == kHolds || !is_better) continue;
    least = id;
    least_rank = rank;
    most_sessions = count;
  }
  return least;
}

std::vector<SessionId> ConnectionPolicy::TakeSilent(int64_t now_ns) {
  std::vector<SessionId> silent;
  if (now_ns < next_check_ns_) return silent;
  next_check_ns_ = now_ns + kSilenceCheckNs;
  for (const auto& [id, session] : table_.sessions()) {
    const bool is_silent = session.state == SessionState::kNew;
    if (is_silent && now_ns - session.since_ns >= kHelloNs) silent.push_back(id);
  }
  return silent;
}

}  // namespace spillway::agent
