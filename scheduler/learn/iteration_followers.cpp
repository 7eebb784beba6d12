#include "scheduler/learn/iteration_followers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::scheduler {
namespace {

// Fewer than kFarAfter, after which the active follower searches its own iteration. An evaluation
// may begin as training does; only later events tell them apart.
constexpr int64_t kUnknownBeforeOthers = 2;

int64_t PersistentBytes(const IterationPattern& pattern) {
  int64_t sum_bytes = 0;
  for (const PatternBuffer& buffer : pattern.buffers)
    sum_bytes += buffer.persistent ? buffer.size_bytes : 0;
  return sum_bytes;
}

}  // namespace

int64_t IterationFollowers::WidestLoopBytes(int64_t events) const {
  int64_t widest_bytes = -1;
  for (const Slot& slot : slots_) {
    const bool is_part = slot.follower && slot.last_followed > events_ - events &&
                         2 * int64_t{slot.follower->pattern().size()} <= events;
    if (is_part) widest_bytes = std::max(widest_bytes, slot.persistent_bytes);
  }
  return widest_bytes;
}

int32_t IterationFollowers::SlotFor(uint64_t fingerprint) const {
  int32_t best = 0;
  for (int32_t slot = 0; slot < kMost; ++slot) {
    if (at(slot) != nullptr && at(slot)->pattern().fingerprint == fingerprint) return slot;
    if (slots_[static_cast<size_t>(slot)].last_followed <
        slots_[static_cast<size_t>(best)].last_followed)
      best = slot;
  }
  return best;
}

int32_t IterationFollowers::Add(std::shared_ptr<const IterationPattern> pattern, int32_t next) {
  active_ = SlotFor(pattern->fingerprint);
  Slot& slot = slots_[static_cast<size_t>(active_)];
  slot.persistent_bytes = PersistentBytes(*pattern);
  slot.follower.emplace(std::move(pattern));
  if (next >= 0) slot.follower->Expect(next);
  slot.last_followed = events_;
  return active_;
}

IterationFollowers::Step IterationFollowers::Observe(const JobEvent& event) {
  IterationFollower* const active = Active();
  if (active == nullptr) return {};
  const bool is_at_begin = active->next() == 0;
  Step step{active_, active->Observe(event), false};
  if (!HasToken(event.kind)) return step;
  ++events_;
  context_.Add(TokenOf(event));
  if (step.followed.position >= 0) {
    slots_[static_cast<size_t>(active_)].last_followed = events_;
    return step;
  }
  const bool ask = is_at_begin || active->unknown_in_a_row() >= kUnknownBeforeOthers;
  return ask ? ResumeInOthers(event, step) : step;
}

IterationFollowers::Step IterationFollowers::ResumeInOthers(const JobEvent& event, Step unknown) {
  std::array<bool, kMost> is_asked{};
  is_asked[static_cast<size_t>(active_)] = true;
  for (int32_t next = LastFollowed(is_asked); next >= 0; next = LastFollowed(is_asked)) {
    is_asked[static_cast<size_t>(next)] = true;
    Slot& other = slots_[static_cast<size_t>(next)];
    const Followed followed = other.follower->Resume(event, context_);
    if (followed.position < 0) continue;
    active_ = next;
    other.last_followed = events_;
    return {next, followed, true};
  }
  return unknown;
}

int32_t IterationFollowers::LastFollowed(const std::array<bool, kMost>& is_asked) const {
  int32_t last = -1;
  for (int32_t slot = 0; slot < kMost; ++slot) {
    const auto i = static_cast<size_t>(slot);
    if (!slots_[i].follower || is_asked[i]) continue;
    if (last < 0 || slots_[i].last_followed > slots_[static_cast<size_t>(last)].last_followed)
      last = slot;
  }
  return last;
}

std::vector<std::shared_ptr<const IterationPattern>> IterationFollowers::Patterns() const {
  std::vector<std::pair<int64_t, int32_t>> order;
  for (int32_t slot = 0; slot < kMost; ++slot) {
    if (at(slot) != nullptr)
      order.push_back({-slots_[static_cast<size_t>(slot)].last_followed, slot});
  }
  std::sort(order.begin(), order.end());
  std::vector<std::shared_ptr<const IterationPattern>> patterns;
  for (const auto& [followed, slot] : order) patterns.push_back(at(slot)->shared_pattern());
  return patterns;
}

}  // namespace spillway::scheduler
