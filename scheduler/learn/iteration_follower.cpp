#include "scheduler/learn/iteration_follower.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

// In events from the expected one.
constexpr int32_t kReach = 64;
constexpr int32_t kWeakReach = 8;
// After this many unknown events the job may be at any event.
constexpr int64_t kFarAfter = 4;
// Tokens that identify a position.
constexpr int32_t kLeastContext = 4;
constexpr int64_t kLeastLostAfter = 64;
constexpr int64_t kMostLostAfter = 1024;
// Of equal tokens; more are not compared.
constexpr int32_t kMostPlaces = 256;

}  // namespace

IterationFollower::IterationFollower(std::shared_ptr<const IterationPattern> pattern)
    : pattern_(std::move(pattern)),
      places_of_(pattern_->events.size()),
      touch_begins_(pattern_->buffers.size() + 1, 0),
      bound_(pattern_->buffers.size()),
      buffer_of_(pattern_->buffers.size()),
      seen_in_(pattern_->events.size(), 0) {
  last_end_ = pattern_->size();
  lost_after_ = std::clamp<int64_t>(pattern_->size() / 4, kLeastLostAfter, kMostLostAfter);
  SortPlaces();
  SortTouches();
  SortChangingBuffers();
  for (int32_t i = 0; i < static_cast<int32_t>(bound_.size()); ++i) {
    const PatternBuffer& buffer = pattern_->buffers[Index(i)];
    if (!buffer.persistent || buffer.allocation == 0) continue;
    Bind(i, buffer.allocation);
    bound_[Index(i)].is_certain = true;
  }
}

void IterationFollower::SortPlaces() {
  for (int32_t i = 0; i < pattern_->size(); ++i) places_.push_back({EventAt(i).token, i});
  std::sort(places_.begin(), places_.end());
  for (int32_t i = 0; i < pattern_->size(); ++i) {
    const auto [range, is_new] = places_of_.Insert(places_[Index(i)].token);
    if (is_new) range->begin = i;
    range->end = i + 1;
  }
}

void IterationFollower::SortTouches() {
  for (const PatternTouch& touch : pattern_->touches) ++touch_begins_[Index(touch.buffer) + 1];
  for (size_t i = 1; i < touch_begins_.size(); ++i) touch_begins_[i] += touch_begins_[i - 1];
  touch_events_.resize(pattern_->touches.size());
  std::vector<int32_t> filled(touch_begins_.begin(), touch_begins_.end() - 1);
  for (int32_t i = 0; i < pattern_->size(); ++i) {
    for (const PatternTouch& touch : pattern_->TouchesOf(EventAt(i)))
      touch_events_[Index(filled[Index(touch.buffer)]++)] = i;
  }
}

// A buffer hands on its allocation before it receives another's, so chains are sorted from the end.
void IterationFollower::SortChangingBuffers() {
  const auto steps_left = [&](int32_t buffer) {
    int32_t steps = 0;
    while ((buffer = pattern_->buffers[Index(buffer)].becomes) >= 0) ++steps;
    return steps;
  };
  for (int32_t i = 0; i < static_cast<int32_t>(bound_.size()); ++i) {
    if (!pattern_->buffers[Index(i)].persistent) changing_buffers_.push_back(i);
  }
  std::stable_sort(changing_buffers_.begin(), changing_buffers_.end(),
                   [&](int32_t a, int32_t b) { return steps_left(a) < steps_left(b); });
}

Followed IterationFollower::Observe(const JobEvent& event) {
  if (event.kind == JobEventKind::kFree) Freed(event.allocation);
  if (!HasToken(event.kind)) return {tracking_, -1, false};
  const uint64_t token = TokenOf(event);
  context_.Add(token);
  const bool is_expected = tracking_ != Tracking::kLost && EventAt(next_).token == token;
  if (is_expected && IsBoundAt(next_, event)) return Advance(next_);
  if (is_expected && MatchAt(next_, event) != Match::kNone) return Accept(next_, event);
  if (TakesAny(event)) return Accept(next_, event);
  return FollowElsewhere(event);
}

bool IterationFollower::TakesAny(const JobEvent& event) const {
  if (tracking_ != Tracking::kFollowing || event.kind != JobEventKind::kOperation) return false;
  if (EventAt(next_).token != kAnyToken) return false;
  return next_ + 1 == pattern_->size() || EventAt(next_ + 1).token != context_.Back(0);
}

void IterationFollower::Expect(int32_t next) {
  ForgetBuffers();
  tracking_ = Tracking::kFollowing;
  next_ = next;
}

Followed IterationFollower::FollowElsewhere(const JobEvent& event) {
  const Range* places = places_of_.Find(context_.Back(0));
  if (places == nullptr) return NoteUnknown();
  if (tracking_ != Tracking::kLost) {
    int32_t position = FindNear(*places, event);
    if (position >= 0) return Accept(position, event);
    position = FindPastTheEnd(*places, event);
    if (position >= 0) {
      EndIteration();
      HandOn();
      return Accept(position, event);
    }
  }
  if (tracking_ != Tracking::kLost && unknown_in_a_row_ + 1 < kFarAfter) return NoteUnknown();
  const Followed resumed = Resume(event, context_);
  return resumed.position >= 0 ? resumed : NoteUnknown();
}

Followed IterationFollower::Resume(const JobEvent& event, const TokenContext& context) {
  const Range* places = places_of_.Find(context.Back(0));
  const int32_t position = places == nullptr ? -1 : FindFar(*places, event, context);
  if (position < 0) return {tracking_, -1, false};
  // Either events were left out, or this is another iteration with unknown buffers.
  if (position < next_ || IsSeen(position) || tracking_ == Tracking::kLost ||
      MatchAt(position, event) == Match::kNone) {
    EndIteration();
    ForgetBuffers();
  }
  return Accept(position, event);
}

IterationFollower::Match IterationFollower::MatchOther(int32_t buffer, uint64_t allocation) const {
  if (bound_[Index(buffer)].is_certain) return Match::kNone;
  const int32_t other = BufferOf(allocation);
  return other >= 0 && bound_[Index(other)].is_certain ? Match::kNone : Match::kWeak;
}

bool IterationFollower::IsBoundAt(int32_t position, const JobEvent& event) const {
  const PatternEvent& expected = EventAt(position);
  if (expected.kind != JobEventKind::kOperation || expected.kind != event.kind) return false;
  const auto touches = pattern_->TouchesOf(expected);
  if (touches.size() != event.touches.size()) return false;
  for (size_t i = 0; i < touches.size(); ++i) {
    const Binding& bound = bound_[Index(touches[i].buffer)];
    if (bound.allocation != event.touches[i].allocation || !bound.is_certain) return false;
  }
  return true;
}

IterationFollower::Match IterationFollower::MatchAt(int32_t position, const JobEvent& event) const {
  const PatternEvent& expected = EventAt(position);
  if (expected.kind != event.kind) return Match::kNone;
  if (expected.kind == JobEventKind::kAllocate) {
    const bool is_made_already = bound_[Index(expected.buffer)].is_certain;
    return is_made_already || BufferOf(event.allocation) >= 0 ? Match::kNone : Match::kWeak;
  }
  const auto touches = pattern_->TouchesOf(expected);
  if (touches.size() != event.touches.size()) return Match::kNone;
  Match match = Match::kWeak;
  for (size_t i = 0; i < touches.size(); ++i) {
    const Match of_buffer = MatchBuffer(touches[i].buffer, event.touches[i].allocation);
    if (of_buffer == Match::kNone) return Match::kNone;
    if (of_buffer == Match::kStrong) match = Match::kStrong;
  }
  return match;
}

IterationFollower::Match IterationFollower::MatchPersistent(int32_t position,
                                                            const JobEvent& event) const {
  const PatternEvent& expected = EventAt(position);
  if (expected.kind != event.kind) return Match::kNone;
  if (expected.kind == JobEventKind::kAllocate) return Match::kWeak;
  const auto touches = pattern_->TouchesOf(expected);
  if (touches.size() != event.touches.size()) return Match::kNone;
  Match match = Match::kWeak;
  for (size_t i = 0; i < touches.size(); ++i) {
    const int32_t buffer = touches[i].buffer, now = BufferOf(event.touches[i].allocation);
    const bool is_persistent = now >= 0 && pattern_->buffers[Index(now)].persistent;
    const bool is_bound = pattern_->buffers[Index(buffer)].persistent && AllocationOf(buffer) != 0;
    if ((is_persistent || is_bound) && now != buffer) return Match::kNone;
    if (is_persistent) match = Match::kStrong;
  }
  return match;
}

int32_t IterationFollower::SharedContext(int32_t position, const TokenContext& context) const {
  const int32_t size = pattern_->size(), most = std::min(context.size(), size);
  int32_t shared = 1;
  for (int32_t at = position; shared < most; ++shared) {
    at = at == 0 ? size - 1 : at - 1;
    const uint64_t token = EventAt(at).token;
    if (token != kAnyToken && token != context.Back(shared)) break;
  }
  return shared;
}

// Looks ahead first; -1: none.
int32_t IterationFollower::FindNear(Range range, const JobEvent& event) const {
  const Place* const begin = places_.data() + range.begin;
  const Place* const end = places_.data() + range.end;
  const Place* const ahead = std::lower_bound(begin, end, Place{begin->token, next_});
  const auto fits = [&](int32_t position) {
    const Match match = IsSeen(position) ? Match::kNone : MatchAt(position, event);
    const int32_t reach = match == Match::kStrong ? kReach : kWeakReach;
    return match != Match::kNone && position <= next_ + reach && position >= next_ - reach;
  };
  for (const Place* place = ahead; place < end && place->event <= next_ + kReach; ++place) {
    if (fits(place->event)) return place->event;
  }
  for (const Place* place = ahead; place > begin && (place - 1)->event >= next_ - kReach; --place) {
    if (fits((place - 1)->event)) return (place - 1)->event;
  }
  return -1;
}

// For an iteration whose last events were left out.
int32_t IterationFollower::FindPastTheEnd(Range range, const JobEvent& event) const {
  const int32_t until = next_ + kReach - pattern_->size();
  for (int32_t i = range.begin; i < range.end && places_[Index(i)].event < until; ++i) {
    if (MatchPersistent(places_[Index(i)].event, event) == Match::kStrong)
      return places_[Index(i)].event;
  }
  return -1;
}

// -1: none or several positions. A follower without any known allocation takes the first of several
// indistinguishable ones. In an iteration of equal steps (two input buffers in turn) that choice
// names the buffers.
int32_t IterationFollower::FindFar(Range range, const JobEvent& event,
                                   const TokenContext& context) const {
  if (range.end - range.begin > kMostPlaces) return -1;
  int32_t by_touches = -1, by_context = -1;
  int32_t strong = 0, most_shared = kLeastContext - 1;
  for (int32_t i = range.begin; i < range.end; ++i) {
    const int32_t position = places_[Index(i)].event;
    const Match match = MatchPersistent(position, event);
    if (match == Match::kNone) continue;
    if (match == Match::kStrong) {
      ++strong;
      by_touches = position;
    }
    const int32_t shared = SharedContext(position, context);
    if (shared < most_shared) continue;
    const bool is_first = shared > most_shared;
    const bool is_told_apart = shared < context.kSize || buffer_of_.size() > 0;
    if (is_first) by_context = position;
    if (!is_first && is_told_apart) by_context = -1;
    most_shared = shared;
  }
  if (strong == 1) return by_touches;
  return by_context;
}

void IterationFollower::Rebind(int32_t buffer, uint64_t allocation) {
  Binding& bound = bound_[Index(buffer)];
  if (bound.allocation != 0) buffer_of_.Erase(bound.allocation);
  bound.allocation = allocation;
  if (allocation == 0) return;
  const auto [owner, is_new] = buffer_of_.Insert(allocation);
  if (!is_new) bound_[Index(*owner)].allocation = 0;
  *owner = buffer;
}

void IterationFollower::Unbind(int32_t buffer) {
  Bind(buffer, 0);
  bound_[Index(buffer)].is_certain = false;
}

// The program's replacement for a persistent allocation becomes the buffer. Other buffers stay
// bound until the iteration ends.
void IterationFollower::Freed(uint64_t allocation) {
  const int32_t buffer = BufferOf(allocation);
  if (buffer >= 0 && pattern_->buffers[Index(buffer)].persistent) Unbind(buffer);
}

Followed IterationFollower::Accept(int32_t position, const JobEvent& event) {
  const PatternEvent& expected = EventAt(position);
  if (expected.kind == JobEventKind::kAllocate) {
    Bind(expected.buffer, event.allocation);
    bound_[Index(expected.buffer)].is_certain = false;
  }
  const bool is_stray = expected.token == kAnyToken;
  const auto touches = is_stray ? std::span<const PatternTouch>() : pattern_->TouchesOf(expected);
  for (size_t i = 0; i < touches.size(); ++i) {
    Bind(touches[i].buffer, event.touches[i].allocation);
    bound_[Index(touches[i].buffer)].is_certain = true;
  }
  return Advance(position);
}

Followed IterationFollower::Advance(int32_t position) {
  seen_in_[Index(position)] = iterations_;
  ++seen_;
  unknown_in_a_row_ = 0;
  tracking_ = Tracking::kFollowing;
  const Followed followed{tracking_, position, is_new_iteration_};
  is_new_iteration_ = false;
  next_ = position + 1;
  while (next_ < pattern_->size() && IsSeen(next_)) ++next_;
  if (next_ == pattern_->size()) {
    EndIteration();
    HandOn();
  }
  return followed;
}

Followed IterationFollower::NoteUnknown() {
  ++unknown_;
  ++unknown_in_a_row_;
  if (tracking_ != Tracking::kLost)
    tracking_ = MayBeLost() ? Tracking::kLost : Tracking::kUncertain;
  return {tracking_, -1, false};
}

void IterationFollower::EndIteration() {
  const int64_t left_out = pattern_->size() - seen_;
  last_misses_ = unknown_ + left_out;
  last_end_ = seen_ > 0 ? next_ : pattern_->size();
  whole_iterations_ += left_out == 0;
  if (last_misses_ > 0) ClearCertainty();
  ++iterations_;
  seen_ = unknown_ = 0;
  is_new_iteration_ = true;
  next_ = 0;
}

void IterationFollower::HandOn() {
  for (int32_t buffer : changing_buffers_) {
    const int32_t becomes = pattern_->buffers[Index(buffer)].becomes;
    const uint64_t allocation = AllocationOf(buffer);
    Unbind(buffer);
    if (becomes >= 0) Bind(becomes, allocation);
  }
}

bool IterationFollower::HasPatternAllocation(int32_t buffer) const {
  const PatternBuffer& of_pattern = pattern_->buffers[Index(buffer)];
  return of_pattern.persistent && of_pattern.allocation != 0 &&
         of_pattern.allocation == AllocationOf(buffer);
}

void IterationFollower::ForgetBuffers() {
  for (int32_t buffer = 0; buffer < static_cast<int32_t>(bound_.size()); ++buffer) {
    if (!HasPatternAllocation(buffer)) Unbind(buffer);
  }
}

// An allocation matched at its first touch may belong to another buffer. An evaluation on a copy,
// or equal layers in another order, may have come first.
void IterationFollower::ClearCertainty() {
  for (int32_t buffer = 0; buffer < static_cast<int32_t>(bound_.size()); ++buffer) {
    if (!HasPatternAllocation(buffer)) bound_[Index(buffer)].is_certain = false;
  }
}

int64_t IterationFollower::NextUse(int32_t buffer) const {
  const PatternBuffer& of_pattern = pattern_->buffers[Index(buffer)];
  const auto begin = touch_events_.begin() + touch_begins_[Index(buffer)];
  const auto end = touch_events_.begin() + touch_begins_[Index(buffer) + 1];
  const auto next = std::lower_bound(begin, end, next_);
  if (next != end) return *next - next_;
  const int32_t later = of_pattern.persistent ? buffer : of_pattern.becomes;
  if (later < 0 || touch_begins_[Index(later)] == touch_begins_[Index(later) + 1]) return kNever;
  return touch_events_[Index(touch_begins_[Index(later)])] + pattern_->size() - next_;
}

}  // namespace spillway::scheduler
