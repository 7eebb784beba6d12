#include "agent/node/table/users.h"

#include <utility>

namespace spillway::agent {

namespace {

constexpr int64_t kLinesPerSecond = 5;
constexpr int64_t kJustNowNs = 2'000'000'000;

}  // namespace

bool Users::TakeConnection(uid_t uid, int64_t now_ns, int64_t per_second) {
  return users_[uid].connections.Take(now_ns, per_second);
}

bool Users::TakeQuestion(uid_t uid, int64_t now_ns, int64_t per_second) {
  return users_[uid].questions.Take(now_ns, per_second);
}

bool Users::TakeLogLine(uid_t uid, int64_t now_ns) {
  User& user = users_[uid];
  if (!user.lines.Take(now_ns, kLinesPerSecond)) return ++user.lines_left_out, false;
  if (const int64_t left_out = std::exchange(user.lines_left_out, 0); left_out > 0)
    services_->Warn("user " + std::to_string(uid) + " caused " + std::to_string(left_out) +
                    " lines too many, which are left out");
  return true;
}

void Users::RemoveSession(uid_t uid, int64_t now_ns) {
  User& user = users_[uid];
  if (--user.sessions == 0 && now_ns - user.connections.last_ns() > kJustNowNs) users_.erase(uid);
}

int64_t Users::SessionsOf(uid_t uid) const {
  const auto found = users_.find(uid);
  return found == users_.end() ? 0 : found->second.sessions;
}

}  // namespace spillway::agent
