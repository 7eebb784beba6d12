#include "scheduler/learn/iteration_detector.h"

#include <algorithm>

namespace spillway::scheduler {

namespace {

// An update after more inner iterations than this, or of less than this share of the whole, stays an insertion.
constexpr int64_t kMostInner = 64;
constexpr int64_t kLeastShareOfBetween = 50;

constexpr int64_t kLeastLostAfter = 64;

}  // namespace

IterationDetector::IterationDetector(int64_t longest_iteration)
    : longest_(longest_iteration), finder_({.longest = longest_iteration}) {}

Step IterationDetector::Add(uint64_t event) {
  ++counts_.events;
  Remember(event);
  const int64_t period = finder_.Add(event);
  Step step = at_.profile >= 0 ? Follow(event) : Step{};
  if (period >= IterationProfiles::kContext && step.tracking != Tracking::kFollowing && RepeatsItself(period))
    Claim(period, &step);
  return step;
}

void IterationDetector::Remember(uint64_t event) {
  const auto most = static_cast<std::size_t>(2 * longest_);
  if (history_.size() < most) {
    history_.push_back(event);
  } else {
    history_[static_cast<std::size_t>(counts_.events - 1) % most] = event;
  }
}

// The event `count` before the last one.
uint64_t IterationDetector::Back(int64_t count) const {
  return history_[static_cast<std::size_t>(counts_.events - 1 - count) %
                  static_cast<std::size_t>(2 * longest_)];
}

std::vector<uint64_t> IterationDetector::Last(int64_t count) const {
  std::vector<uint64_t> events;
  events.reserve(static_cast<std::size_t>(count));
  for (int64_t back = count - 1; back >= 0; --back) events.push_back(Back(back));
  return events;
}

bool IterationDetector::RepeatsItself(int64_t period) const {
  if (2 * period > std::min(counts_.events, 2 * longest_)) return false;
  for (int64_t back = 0; back < period; ++back) {
    if (Back(back) != Back(back + period)) return false;
  }
  return true;
}

void IterationDetector::Claim(int64_t period, Step* step) {
  const int32_t known = profiles_.size();
  const int32_t profile = profiles_.Add(Last(period));
  const bool is_new = profile == known || profiles_.events(profile) == Last(period);
  const auto place = profiles_.Find(Last(IterationProfiles::kContext), {profile, 0});
  at_ = is_new ? ProfilePosition{profile, 0} : *place;
  tracking_ = Tracking::kFollowing;
  astray_ = whole_ = since_between_ = 0;
  last_between_ = {};
  const int64_t size = SizeOf(profile);
  *step = {tracking_, profile, (at_.next + size - 1) % size, false, is_new};
}

Step IterationDetector::Follow(uint64_t event) {
  const bool expected = profiles_.events(at_.profile)[static_cast<std::size_t>(at_.next)] == event;
  return tracking_ == Tracking::kFollowing && expected ? Advance() : Stray();
}

Step IterationDetector::Advance() {
  const int64_t position = at_.next;
  at_.next = (position + 1) % SizeOf(at_.profile);
  ++since_between_;
  return {tracking_, at_.profile, position, EndsIteration(1), false};
}

// After `followed` more events of the iteration, the last one before at_.next.
bool IterationDetector::EndsIteration(int64_t followed) {
  whole_ += followed;
  if (at_.next >= followed) return false;
  const bool whole = whole_ - at_.next == SizeOf(at_.profile);
  whole_ = at_.next;
  counts_.whole_iterations += whole;
  if (whole) profiles_.NoteFollowed(at_.profile);
  return whole;
}

int64_t IterationDetector::LostAfter() const { return std::max(kLeastLostAfter, SizeOf(at_.profile) / 4); }

Step IterationDetector::Stray() {
  ++astray_;
  ++counts_.inserted_events;
  const bool lost = astray_ > LostAfter();
  if (lost && tracking_ != Tracking::kLost) ++counts_.times_lost;
  tracking_ = lost ? Tracking::kLost : Tracking::kAstray;
  if (astray_ >= IterationProfiles::kContext) {
    if (const auto found = profiles_.Find(Last(IterationProfiles::kContext), at_)) return Resume(*found);
  }
  return {tracking_, -1, -1, false, false};
}

// The last few events stand before `found`: the iteration goes on where it was left, or elsewhere.
Step IterationDetector::Resume(ProfilePosition found) {
  const int64_t size = SizeOf(found.profile);
  const Between between{since_between_, at_.next, astray_ - IterationProfiles::kContext, 0};
  const bool goes_on =
      found.profile == at_.profile && found.next == (at_.next + IterationProfiles::kContext) % size;
  at_ = found;
  counts_.inserted_events -= IterationProfiles::kContext;
  tracking_ = Tracking::kFollowing;
  if (!goes_on) whole_ = -size;  // no whole iteration before the next one's begin
  Step step{tracking_, at_.profile, (at_.next + size - 1) % size, EndsIteration(IterationProfiles::kContext),
            false};
  since_between_ = IterationProfiles::kContext;
  if (goes_on) {
    NoteBetween(between, &step);
  } else {
    last_between_ = {};
  }
  astray_ = 0;
  return step;
}

// The same came between at the same place twice, after equally many events: together they are one iteration.
void IterationDetector::NoteBetween(Between between, Step* step) {
  for (int64_t back = IterationProfiles::kContext; back < IterationProfiles::kContext + between.events;
       ++back)
    between.hash = MixToken(between.hash, Back(back));
  const bool again = between == last_between_;
  last_between_ = between;
  const int64_t size = SizeOf(at_.profile);
  const int64_t outer = between.followed + between.events;
  const bool worth_it = between.followed >= size && between.followed <= kMostInner * size &&
                        between.events * kLeastShareOfBetween >= outer && outer <= longest_;
  if (again && worth_it && RepeatsItself(outer)) Claim(outer, step);
}

}  // namespace spillway::scheduler
