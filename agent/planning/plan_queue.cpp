#include "agent/planning/plan_queue.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr uint64_t kTurn = 2;  // leaves room between two turns for new users

}  // namespace

PlanQueue::Entry PlanQueue::Enter(uint64_t id, const std::string& user, int64_t expires_ns) {
  const auto known = users_.find(user);
  if (known != users_.end() && known->second.requests >= limits_.per_user)
    return Entry::kUserHasTooMany;
  if (static_cast<int64_t>(requests_.size()) >= limits_.in_all) return Entry::kTooMany;
  requests_[id] = {user, expires_ns, false};
  // A user without requests has no remembered turn. A new user comes before the one with the last
  // turn, and behind all that wait longer. So repeated single requests overtake nobody forever.
  User& own = users_.try_emplace(user, User{.last_turn = std::max(turns_, kTurn) - kTurn / 2})
                  .first->second;
  ++own.requests;
  own.waiting.push_back(id);
  return Entry::kWaits;
}

std::optional<uint64_t> PlanQueue::Begin() {
  if (running_ >= limits_.workers) return std::nullopt;
  const int64_t most_of_one = std::max<int64_t>(1, limits_.workers - 1);
  User* next = nullptr;
  for (auto& [name, user] : users_) {
    if (user.waiting.empty() || user.running >= most_of_one) continue;
    if (next == nullptr || std::pair(user.last_turn, user.waiting.front()) <
                               std::pair(next->last_turn, next->waiting.front()))
      next = &user;
  }
  if (next == nullptr) return std::nullopt;
  const uint64_t id = next->waiting.front();
  next->waiting.pop_front();
  next->last_turn = turns_ += kTurn;
  ++next->running;
  ++running_;
  requests_.at(id).has_begun = true;
  return id;
}

std::vector<uint64_t> PlanQueue::TakeExpired(int64_t now_ns) {
  std::vector<uint64_t> expired;
  for (const auto& [id, request] : requests_) {
    if (!request.has_begun && request.expires_ns <= now_ns) expired.push_back(id);
  }
  for (uint64_t id : expired) Leave(id);
  return expired;
}

std::optional<int64_t> PlanQueue::NextExpiry() const {
  std::optional<int64_t> next;
  for (const auto& [id, request] : requests_) {
    if (!request.has_begun) next = std::min(next.value_or(INT64_MAX), request.expires_ns);
  }
  return next;
}

void PlanQueue::Leave(uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  const auto user = users_.find(found->second.user);
  std::erase(user->second.waiting, id);
  if (found->second.has_begun) {
    --user->second.running;
    --running_;
  }
  if (--user->second.requests == 0) users_.erase(user);
  requests_.erase(found);
}

}  // namespace spillway::agent
