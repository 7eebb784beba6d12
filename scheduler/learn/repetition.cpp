#include "scheduler/learn/repetition.h"

#include <algorithm>
#include <iterator>

#include "scheduler/learn/period_candidates.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kMostMultiples = 64;
constexpr int64_t kSample = 1024;
constexpr double kLeastOdds = 0x1p48;

}  // namespace

Repetition::Repetition(const EventHistory& history, int64_t distance, bool has_lasted)
    : history_(history),
      distance_(distance),
      a_begin_(history.end() - 2 * distance),
      has_lasted_(has_lasted),
      forward_(64),
      backward_(64) {
  holds_ =
      a_begin_ >= history.begin() && Compare() && forward_.size() > 0 && FreesMostAllocations();
}

bool Repetition::Compare() {
  for (int64_t a = a_begin_; a < a_begin_ + distance_; ++a) {
    if (!CompareEvents(a)) return false;
  }
  return true;
}

bool Repetition::CompareEvents(int64_t a) {
  new_matches_.clear();
  if (CompareTouches(a)) return true;
  ForgetNewMatches();
  return MayBeStray(a);
}

bool Repetition::CompareTouches(int64_t a) {
  const int64_t b = a + distance_;
  const int64_t count = history_.touch_count(a);
  const bool are_new = history_.kind(a) == JobEventKind::kAllocate;
  if (history_.token(a) != history_.token(b) || count != history_.touch_count(b)) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (Match(history_.touch(a, i).allocation, history_.touch(b, i).allocation, are_new)) continue;
    if (failed_position_ >= 0) return false;
    failed_position_ = b;
    failed_touch_ = i;
    return false;
  }
  return true;
}

bool Repetition::MayBeStray(int64_t a) {
  const bool are_operations = history_.kind(a) == JobEventKind::kOperation &&
                              history_.kind(a + distance_) == JobEventKind::kOperation;
  const int64_t most_strays = distance_ < kShortestWithStrays ? 0 : distance_ / kTokensPerStray;
  if (!are_operations || std::ssize(strays_) >= most_strays) return false;
  if (!has_lasted_ && history_.token(a) == history_.token(a + distance_)) return false;
  strays_.push_back(a - a_begin_);
  return true;
}

void Repetition::ForgetNewMatches() {
  for (const uint64_t a : new_matches_) {
    const uint64_t b = InB(a);
    if (a == b) persistent_bytes_ -= history_.Find(a)->size_bytes;
    forward_.Erase(a);
    backward_.Erase(b);
  }
}

bool Repetition::IsStray(int64_t offset) const {
  return std::binary_search(strays_.begin(), strays_.end(), offset);
}

bool Repetition::FreesMostAllocations() const {
  int64_t made_bytes = 0, freed_bytes = 0;
  for (int64_t a = a_begin_; a < a_begin_ + distance_; ++a) {
    if (history_.kind(a) != JobEventKind::kAllocate) continue;
    const KnownAllocation& known = *history_.Find(history_.touch(a, 0).allocation);
    made_bytes += known.size_bytes;
    if (known.freed != KnownAllocation::kAlive) freed_bytes += known.size_bytes;
  }
  return 2 * freed_bytes >= made_bytes;
}

bool Repetition::Match(uint64_t a, uint64_t b, bool are_new) {
  if (const uint64_t* const in_b = forward_.Find(a)) return *in_b == b;
  if (backward_.Find(b) != nullptr) return false;
  if (a == b ? are_new : !are_new && !MayMatch(a, b)) return false;
  *forward_.Insert(a).first = b;
  *backward_.Insert(b).first = a;
  if (a == b) persistent_bytes_ += history_.Find(a)->size_bytes;
  new_matches_.push_back(a);
  return true;
}

bool Repetition::MayMatch(uint64_t a, uint64_t b) const {
  const KnownAllocation *of_a = history_.Find(a), *of_b = history_.Find(b);
  if (of_a == nullptr || of_b == nullptr || of_a->size_bytes != of_b->size_bytes) return false;
  if (of_b->born == KnownAllocation::kForeign) return MayMatchForeign(*of_a, *of_b);
  if (of_a->born == KnownAllocation::kForeign)
    return of_a->arrived < 0 && of_b->born >= a_begin_ - distance_ &&
           of_b->born < a_begin_ + distance_;
  if (of_b->born - of_a->born == distance_) return true;
  const bool made_in_a = of_b->born >= a_begin_ && of_b->born < a_begin_ + distance_;
  return made_in_a && of_a->born < a_begin_ && of_a->born >= a_begin_ - 2 * distance_;
}

bool Repetition::MayMatchForeign(const KnownAllocation& a, const KnownAllocation& b) const {
  if (a.born != KnownAllocation::kForeign || a.arrived < 0 || b.arrived < 0) return false;
  const int64_t apart = b.arrived - a.arrived;
  return 2 * apart >= distance_ && apart <= 2 * distance_;
}

int64_t Repetition::LongerDistance(int64_t run) const {
  if (failed_position_ < 0) return 0;
  const uint64_t wanted = history_.touch(failed_position_, failed_touch_).allocation;
  for (int64_t times = 2; times <= kMostMultiples; ++times) {
    const int64_t position = failed_position_ - times * distance_;
    if (times * distance_ > run || position < history_.begin()) return 0;
    if (history_.touch_count(position) > failed_touch_ &&
        history_.touch(position, failed_touch_).allocation == wanted)
      return times * distance_;
  }
  return 0;
}

// Uses the probability that two random events of the iteration have equal tokens.
bool IsMoreThanChance(const EventHistory& history, int64_t distance, int64_t run) {
  const int64_t size = std::min(distance, kSample);
  std::vector<uint64_t> tokens;
  for (int64_t i = 0; i < size; ++i) tokens.push_back(history.token(history.end() - 1 - i));
  std::sort(tokens.begin(), tokens.end());
  int64_t equal_pairs = 0;
  for (size_t i = 0, first = 0; i < tokens.size(); ++i) {
    if (tokens[i] != tokens[first]) first = i;
    equal_pairs += 2 * static_cast<int64_t>(i - first) + 1;
  }
  const double odds_of_one = static_cast<double>(size * size) / static_cast<double>(equal_pairs);
  double odds = 1;
  for (int64_t i = 0; i < run && odds < kLeastOdds; ++i) odds *= odds_of_one;
  return odds >= kLeastOdds;
}

}  // namespace spillway::scheduler
