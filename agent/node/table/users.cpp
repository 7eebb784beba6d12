#include "agent/node/table/users.h"

#include <utility>

namespace spillway::agent {

namespace {

constexpr int64_t kLinesPerSecond = 5;
constexpr int64_t kJustNowNs = 2'000'000'000;

}  // namespace

bool Users::TakeConnection(const User& user, int64_t now_ns, int64_t per_second) {
  return users_[user].connections.Take(now_ns, per_second);
}

bool Users::TakeQuestion(const User& user, int64_t now_ns, int64_t per_second) {
  return users_[user].questions.Take(now_ns, per_second);
}

bool Users::TakeLogLine(const User& user, int64_t now_ns) {
  Use& use = users_[user];
  if (!use.lines.Take(now_ns, kLinesPerSecond)) return ++use.lines_left_out, false;
  if (const int64_t left_out = std::exchange(use.lines_left_out, 0); left_out > 0)
    services_->Warn((user.allocation.empty() ? "user " + std::to_string(user.uid)
                                             : "allocation " + user.allocation) +
                    (user.entrance == Entrance::kJobsOnly ? " in containers caused " : " caused ") +
                    std::to_string(left_out) + " lines too many, which are left out");
  return true;
}

void Users::RemoveSession(const User& user, int64_t now_ns) {
  Use& use = users_[user];
  if (--use.sessions == 0 && now_ns - use.connections.last_ns() > kJustNowNs) users_.erase(user);
}

int64_t Users::SessionsOf(const User& user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : found->second.sessions;
}

}  // namespace spillway::agent
