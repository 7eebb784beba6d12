#include "scheduler/learn/iteration_follower.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "base/prng.h"
#include "tests/unit/scheduler_learn/learned_job.h"

namespace spillway::scheduler {
namespace {

using testing::KeptEvent;
using testing::LearnedJob;
using testing::SmallGpt;

// A follower whose every answer is checked against the pattern independently.
class CheckedFollower {
 public:
  explicit CheckedFollower(std::shared_ptr<const IterationPattern> pattern)
      : follower_(std::move(pattern)) {}

  Followed Observe(const JobEvent& event) {
    const Followed followed = follower_.Observe(event);
    if (followed.position >= 0) Check(event, followed);
    return followed;
  }
  int Follow(const std::vector<KeptEvent>& events) {
    int followed = 0;
    for (const KeptEvent& event : events) followed += Observe(event.Get()).position >= 0;
    return followed;
  }
  const IterationFollower& follower() const { return follower_; }

 private:
  void Check(const JobEvent& event, const Followed& followed) {
    const IterationPattern& pattern = follower_.pattern();
    ASSERT_EQ(followed.tracking, Tracking::kFollowing);
    const PatternEvent& expected = pattern.events[static_cast<size_t>(followed.position)];
    ASSERT_EQ(expected.token, TokenOf(event));
    if (followed.began_iteration) {
      seen_.clear();
      touched_.clear();
      is_.clear();
    }
    ASSERT_TRUE(seen_.insert(followed.position).second)
        << "position " << followed.position << " twice";
    const auto touches = pattern.TouchesOf(expected);
    ASSERT_EQ(touches.size(), event.touches.size());
    for (size_t i = 0; i < touches.size(); ++i)
      Touch(touches[i].buffer, event.touches[i].allocation);
  }
  // Within one iteration, buffers and allocations correspond one to one.
  void Touch(int32_t buffer, uint64_t allocation) {
    const PatternBuffer& of_pattern = follower_.pattern().buffers[static_cast<size_t>(buffer)];
    if (of_pattern.persistent && of_pattern.allocation != 0) {
      ASSERT_EQ(of_pattern.allocation, allocation);
    }
    ASSERT_EQ(touched_.emplace(buffer, allocation).first->second, allocation);
    ASSERT_EQ(is_.emplace(allocation, buffer).first->second, buffer);
  }

  IterationFollower follower_;
  std::set<int32_t> seen_;
  std::map<int32_t, uint64_t> touched_;
  std::map<uint64_t, int32_t> is_;
};

int64_t WithTokens(const std::vector<KeptEvent>& events) {
  int64_t count = 0;
  for (const KeptEvent& event : events) count += HasToken(event.event.kind);
  return count;
}

TEST(IterationFollowerTest, EveryEventOfAnIterationHasItsPosition) {
  for (const testing::Habits& habits : {testing::Habits{}, testing::Habits{.late_loss = true},
                                        testing::Habits{.double_buffered_input = true}}) {
    LearnedJob job(SmallGpt(4), habits);
    CheckedFollower follower(job.pattern);
    follower.Follow(job.Next());
    for (int i = 0; i < 5; ++i) {
      const auto events = job.Next();
      EXPECT_EQ(follower.Follow(events), job.pattern->size());
      EXPECT_EQ(follower.follower().last_misses(), 0);
    }
    EXPECT_GE(follower.follower().whole_iterations(), 5);
  }
}

TEST(IterationFollowerTest, FollowsSoonFromAnyPointOfTheIteration) {
  for (size_t from : {3u, 50u, 200u, 300u}) {
    LearnedJob job(SmallGpt(4));
    auto events = job.Next();
    events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(from));
    CheckedFollower follower(job.pattern);
    EXPECT_GE(follower.Follow(events), WithTokens(events) - 8) << from;
  }
}

// Regression: a lost follower took each event that equals the iteration's first for it.
TEST(IterationFollowerTest, LoopOfEqualPassesIsFollowedOnlyOnceItsPassIsKnown) {
  // Given six loops of forty equal passes
  IterationLearner learner;
  std::shared_ptr<const IterationPattern> pattern;
  std::vector<KeptEvent> iteration;
  const auto add = [&](const JobEvent& event) {
    if (auto learned = learner.Add(event)) pattern = std::move(learned);
    iteration.emplace_back(event);
  };
  for (uint64_t id = 1; id <= 7; ++id) add(JobEvent::Allocate(id, 1 << 20));
  for (int i = 0; i < 3; ++i) {
    iteration.clear();
    for (uint64_t event = 0; event < 6 * 40 * 4; ++event) {
      const uint64_t loop = 1 + event / 160, kernel = event % 4;
      add(JobEvent::Operation(10 * loop + kernel, std::vector<JobTouch>{{loop}, {7}}));
    }
  }
  ASSERT_EQ(pattern->size(), std::ssize(iteration));
  CheckedFollower settled(pattern);
  for (int i = 0; i < 2; ++i) settled.Follow(iteration);
  std::vector<int32_t> positions;
  for (const KeptEvent& event : iteration)
    positions.push_back(settled.Observe(event.Get()).position);
  // When followers begin anywhere, they are never at another position
  for (size_t begin = 0; begin < iteration.size(); begin += 13) {
    CheckedFollower follower(pattern);
    int followed = 0;
    for (size_t i = begin; i < begin + iteration.size(); ++i) {
      const size_t event = i % iteration.size();
      const int32_t position = follower.Observe(iteration[event].Get()).position;
      if (position < 0) continue;
      ++followed;
      ASSERT_EQ(position, positions[event]) << "begun at " << begin << ", after " << i - begin;
    }
    EXPECT_GT(followed, 6 * 40 * 4 / 2) << "begun at " << begin;
  }
}

TEST(IterationFollowerTest, BuffersAreBoundToTheTouchedAllocations) {
  LearnedJob job(SmallGpt(3));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  for (const KeptEvent& kept : job.Next()) {
    const Followed followed = follower.Observe(kept.Get());
    if (kept.event.kind != JobEventKind::kOperation) continue;
    const auto touches =
        job.pattern->TouchesOf(job.pattern->events[static_cast<size_t>(followed.position)]);
    for (size_t i = 0; i < touches.size() && followed.position + 1 < job.pattern->size(); ++i) {
      EXPECT_EQ(follower.follower().AllocationOf(touches[i].buffer), kept.touches[i].allocation);
      EXPECT_EQ(follower.follower().BufferOf(kept.touches[i].allocation), touches[i].buffer);
    }
  }
}

TEST(IterationFollowerTest, NextUseIsTheNumberOfEventsUntilTheTouch) {
  LearnedJob job(SmallGpt(3), {.double_buffered_input = true});
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  // Given, for every live allocation, its predicted next use
  std::map<uint64_t, int64_t> said;
  int64_t now = 0, checked = 0;
  for (int i = 0; i < 2; ++i) {
    for (const KeptEvent& kept : job.Next()) {
      // When an allocation is touched, the prediction was right
      for (const JobTouch& touch : kept.touches) {
        if (!said.contains(touch.allocation)) continue;
        EXPECT_EQ(said[touch.allocation], now);
        ++checked;
      }
      if (!HasToken(kept.event.kind)) continue;
      ASSERT_GE(follower.Observe(kept.Get()).position, 0);
      ++now;
      for (int32_t buffer = 0; buffer < static_cast<int32_t>(job.pattern->buffers.size());
           ++buffer) {
        const uint64_t allocation = follower.follower().AllocationOf(buffer);
        const int64_t next_use = follower.follower().NextUse(buffer);
        if (allocation != 0 && next_use != IterationFollower::kNever)
          said[allocation] = now + next_use;
      }
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(IterationFollowerTest, UnknownEventsHaveNoPositionAndAreCounted) {
  LearnedJob job(SmallGpt(3));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  const auto events = job.Next();
  int followed = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    followed += follower.Observe(events[i].Get()).position >= 0;
    if (i % 50 != 49) continue;
    const Followed unknown = follower.Observe(JobEvent::Operation(12345, {}));
    EXPECT_EQ(unknown.position, -1);
    EXPECT_EQ(unknown.tracking, Tracking::kUncertain);
  }
  EXPECT_EQ(followed, job.pattern->size());
  EXPECT_EQ(follower.follower().last_misses(), static_cast<int64_t>(events.size() / 50));
}

TEST(IterationFollowerTest, EventThatTouchesAnotherBufferHasNoPosition) {
  LearnedJob job(SmallGpt(3));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  // Given an expected event with one buffer exchanged
  for (const KeptEvent& kept : job.Next()) {
    if (!kept.touches.empty()) {
      KeptEvent other = kept;
      other.touches[0].allocation = 999'999;
      const bool was_known = job.pattern
                                 ->buffers[static_cast<size_t>(
                                     follower.follower().BufferOf(kept.touches[0].allocation))]
                                 .persistent;
      if (was_known) {
        EXPECT_EQ(follower.Observe(other.Get()).position, -1);
      }
    }
    follower.Observe(kept.Get());
  }
}

// A job may replace allocations (a resumed optimiser's state, an input of its own) without being
// learned anew.
TEST(IterationFollowerTest, AllocationThatReplacesAFreedBufferIsThatBuffer) {
  LearnedJob job(SmallGpt(3));
  IterationFollower follower(job.pattern);
  constexpr uint64_t kAnew = 1'000'000;  // added to the freed allocation's number
  for (const KeptEvent& kept : job.Next()) follower.Observe(kept.Get());
  std::set<uint64_t> freed;
  for (size_t i = 0; i < job.pattern->buffers.size(); i += 3) {
    const PatternBuffer& buffer = job.pattern->buffers[i];
    if (!buffer.persistent) continue;
    freed.insert(buffer.allocation);
    follower.Observe(JobEvent::Free(buffer.allocation));
    follower.Observe(JobEvent::Allocate(buffer.allocation + kAnew, buffer.size_bytes));
  }
  ASSERT_GT(freed.size(), 3u);
  const auto follow = [&] {
    int followed = 0;
    for (KeptEvent& kept : job.Next()) {
      for (JobTouch& touch : kept.touches)
        touch.allocation += freed.contains(touch.allocation) ? kAnew : 0;
      followed += follower.Observe(kept.Get()).position >= 0;
    }
    return followed;
  };
  // The first few are missed: allocations of equal sizes may be confused at first
  EXPECT_GE(follow(), job.pattern->size() - 8);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(follow(), job.pattern->size());
  EXPECT_EQ(follower.last_misses(), 0);
  for (size_t i = 0; i < job.pattern->buffers.size(); i += 3) {
    const uint64_t allocation = job.pattern->buffers[i].allocation;
    if (freed.contains(allocation)) {
      EXPECT_EQ(follower.AllocationOf(static_cast<int32_t>(i)), allocation + kAnew);
    }
  }
  // Also where the job was lost meanwhile
  for (uint64_t i = 0; i < 500; ++i) follower.Observe(JobEvent::Operation(2'000'000 + i % 100, {}));
  ASSERT_EQ(follower.tracking(), Tracking::kLost);
  EXPECT_GE(follow(), job.pattern->size() - 8);
  EXPECT_EQ(follow(), job.pattern->size());
}

// A follower whose job has freed and reallocated everything that outlives an iteration.
struct RenewedJob {
  static constexpr uint64_t kAnew = 1'000'000;  // added to the freed allocation's number
  LearnedJob job{SmallGpt(3)};
  IterationFollower follower{job.pattern};

  void Renew(const PatternBuffer& buffer) {
    follower.Observe(JobEvent::Free(buffer.allocation));
    follower.Observe(JobEvent::Allocate(buffer.allocation + kAnew, buffer.size_bytes));
    renewed.insert(buffer.allocation);
  }
  std::vector<KeptEvent> Next() {
    auto events = job.Next();
    for (KeptEvent& kept : events) {
      for (JobTouch& touch : kept.touches)
        touch.allocation += renewed.contains(touch.allocation) ? kAnew : 0;
    }
    return events;
  }
  int Follow() {
    int followed = 0;
    for (const KeptEvent& kept : Next()) followed += follower.Observe(kept.Get()).position >= 0;
    return followed;
  }
  std::set<uint64_t> renewed;
};

// Regression: a third of the new allocations were taken for another layer's for the rest of the
// job.
TEST(IterationFollowerTest, SimultaneousReallocationsAreDistinguishedWithinTwoIterations) {
  RenewedJob renewed;
  renewed.Follow();
  for (const PatternBuffer& buffer : renewed.job.pattern->buffers) {
    if (buffer.persistent) renewed.Renew(buffer);
  }
  ASSERT_GT(renewed.renewed.size(), 10u);
  renewed.Follow();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(renewed.Follow(), renewed.job.pattern->size());
}

// Regression: an evaluation on a copy, for example, bound the buffer to that copy for the rest of
// the job.
TEST(IterationFollowerTest, FirstCandidateForAFreedBufferYieldsToItsRealSuccessor) {
  const LearnedJob same(SmallGpt(3));
  for (const PatternBuffer& buffer : same.pattern->buffers) {
    if (!buffer.persistent) continue;
    RenewedJob renewed;
    renewed.Follow();
    renewed.Renew(buffer);
    // Given that the first operation on a new allocation is preceded by one on another allocation
    bool has_come = false;
    for (const KeptEvent& kept : renewed.Next()) {
      KeptEvent on_other = kept;
      bool is_on_it = false;
      for (JobTouch& touch : on_other.touches) {
        if (touch.allocation != buffer.allocation + RenewedJob::kAnew) continue;
        touch.allocation = 7'777'777;
        is_on_it = true;
      }
      if (is_on_it && !std::exchange(has_come, true)) renewed.follower.Observe(on_other.Get());
      renewed.follower.Observe(kept.Get());
    }
    ASSERT_TRUE(has_come);
    renewed.Follow();
    EXPECT_EQ(renewed.Follow(), renewed.job.pattern->size());
  }
}

TEST(IterationFollowerTest, ShortLastBatchIsLostAndTheNextIterationIsFollowed) {
  // Given an epoch whose last batch has other, unknown sizes
  LearnedJob job(SmallGpt(4));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  for (uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(follower.Observe(JobEvent::Operation(1'000'000 + i % 100, {})).position, -1);
  }
  EXPECT_EQ(follower.follower().tracking(), Tracking::kLost);
  const auto events = job.Next();
  EXPECT_GE(follower.Follow(events), job.pattern->size() - 8);
  EXPECT_EQ(follower.Follow(job.Next()), job.pattern->size());
}

TEST(IterationFollowerTest, FollowerSkipsFromATruncatedIterationToTheNext) {
  // Given an evaluation: forward, and then training's forward again
  LearnedJob job(SmallGpt(4));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  job.events.clear();
  job.job.Evaluate();
  const std::vector<KeptEvent> evaluation = std::move(job.events);
  follower.Follow(evaluation);
  EXPECT_GE(follower.Follow(job.Next()), job.pattern->size() - 12);
  EXPECT_EQ(follower.Follow(job.Next()), job.pattern->size());
}

TEST(IterationFollowerTest, CarriedBuffersAreKnownAfterATruncatedIteration) {
  LearnedJob job(SmallGpt(3), {.double_buffered_input = true});
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  for (int i = 0; i < 5; ++i) {
    // Given an iteration whose last updates are left out
    std::vector<KeptEvent> events = job.Next();
    std::erase_if(events, [](const KeptEvent& event) { return !HasToken(event.event.kind); });
    events.resize(events.size() - 4, events.front());
    EXPECT_EQ(follower.Follow(events), job.pattern->size() - 4);
    // Then the next iteration is followed, except for the few events that identify its beginning
    EXPECT_GE(follower.Follow(job.Next()), job.pattern->size() - 6);
  }
}

TEST(IterationFollowerTest, ReorderedEventsOfThreadsKeepTheirPositions) {
  // Given events up to three places early or late, never before an event that allocates their
  // buffers
  LearnedJob job(SmallGpt(4));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  base::Prng prng(3);
  for (int i = 0; i < 10; ++i) {
    std::vector<KeptEvent> events = job.Next();
    std::erase_if(events, [](const KeptEvent& event) { return !HasToken(event.event.kind); });
    for (size_t at = 0; at + 1 < events.size(); ++at) {
      const bool both_operate = events[at].event.kind == JobEventKind::kOperation &&
                                events[at + 1].event.kind == JobEventKind::kOperation;
      if (both_operate && prng.Below(10) == 0) std::swap(events[at], events[at + 1]);
    }
    EXPECT_EQ(follower.Follow(events), job.pattern->size());
  }
}

TEST(IterationFollowerTest, EqualAccumulationStepsAreDistinguishedByOrder) {
  // Given four equal steps and an update as one iteration
  IterationLearner learner;
  std::shared_ptr<const IterationPattern> pattern;
  std::vector<KeptEvent> events;
  testing::NetworkJob job(SmallGpt(2), {}, [&](const JobEvent& event) {
    if (auto learned = learner.Add(event)) pattern = std::move(learned);
    events.emplace_back(event);
  });
  job.SetUp();
  for (int i = 0; i < 4; ++i) job.IterateWithAccumulation(4);
  CheckedFollower follower(pattern);
  const auto next = [&] {
    events.clear();
    job.IterateWithAccumulation(4);
    return std::exchange(events, {});
  };
  follower.Follow(next());
  EXPECT_EQ(follower.Follow(next()), pattern->size());
  // When a long evaluation follows, the next iteration is found again and the one after it is
  // followed whole
  for (uint64_t i = 0; i < 3000; ++i)
    follower.Observe(JobEvent::Operation(1'000'000 + i % 100, {}));
  EXPECT_EQ(follower.follower().tracking(), Tracking::kLost);
  follower.Follow(next());
  EXPECT_EQ(follower.Follow(next()), pattern->size());
  EXPECT_EQ(follower.follower().last_misses(), 0);
}

TEST(IterationFollowerTest, EventsOfAnotherThreadAreUnknownAndHarmless) {
  // Given a thread that copies through its own memory somewhere in each iteration
  LearnedJob job(SmallGpt(3));
  CheckedFollower follower(job.pattern);
  follower.Follow(job.Next());
  base::Prng prng(9);
  uint64_t other = 1'000'000;
  for (int i = 0; i < 20; ++i) {
    int followed = 0;
    for (const KeptEvent& kept : job.Next()) {
      while (prng.Below(4) == 0) {
        // Its size occurs among the pattern's allocations, too
        const std::vector<JobTouch> touches = {{++other, true}};
        const JobEvent unknown_events[] = {
            JobEvent::Allocate(
                other, job.pattern->buffers[prng.Below(job.pattern->buffers.size())].size_bytes),
            JobEvent::Operation(777, touches)};
        for (const JobEvent& unknown : unknown_events) follower.Observe(unknown);
      }
      followed += follower.Observe(kept.Get()).position >= 0;
    }
    // Then the pattern's own thread is followed; an allocation of equal size may be confused
    int operations = 0;
    for (const PatternEvent& event : job.pattern->events)
      operations += event.kind == JobEventKind::kOperation;
    EXPECT_GE(followed, operations);
    EXPECT_NE(follower.follower().tracking(), Tracking::kLost);
  }
}

TEST(IterationFollowerTest, FollowingResumesWithinOneIterationAfterAnEditedOne) {
  // Given iterations with a few events omitted, replaced or inserted at random
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Prng prng(seed);
    LearnedJob job(SmallGpt(2),
                   {.late_loss = seed % 2 == 0, .double_buffered_input = seed % 3 == 0});
    CheckedFollower follower(job.pattern);
    follower.Follow(job.Next());
    for (int round = 0; round < 4; ++round) {
      std::vector<KeptEvent> events = job.Next();
      const uint64_t edits = 1 + prng.Below(6);
      for (uint64_t edit = 0; edit < edits; ++edit) {
        const auto at =
            events.begin() + static_cast<std::ptrdiff_t>(prng.Below(events.size() - 40));
        const auto count = static_cast<std::ptrdiff_t>(1 + prng.Below(40));
        const KeptEvent unknown(JobEvent::Operation(5'000'000 + prng.Below(10), {}));
        const KeptEvent known = events[prng.Below(events.size())];
        switch (prng.Below(4)) {
          case 0:
            events.erase(at, at + count);
            break;
          case 1:
            events.insert(at, static_cast<size_t>(count), unknown);
            break;
          case 2:
            std::fill(at, at + count, unknown);
            break;
          case 3:  // an event of the iteration itself, elsewhere
            if (known.event.kind == JobEventKind::kOperation) events.insert(at, known);
            break;
        }
      }
      follower.Follow(events);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
      // Then the next iteration is followed, and the one after it from its first event to its last
      EXPECT_GE(follower.Follow(job.Next()), job.pattern->size() - 80) << "seed " << seed;
      ASSERT_EQ(follower.Follow(job.Next()), job.pattern->size()) << "seed " << seed;
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(IterationFollowerTest, StoredPatternBindsItsBuffersAsTheyAreTouched) {
  // Given a pattern from a plan store: the allocations of its persistent buffers are unknown
  LearnedJob first(SmallGpt(4), {.lazy_optimizer_state = true});
  auto stored = std::make_shared<IterationPattern>(*first.pattern);
  for (PatternBuffer& buffer : stored->buffers) buffer.allocation = 0;
  // When the job runs again, with other allocations
  CheckedFollower follower(stored);
  std::vector<KeptEvent> events;
  testing::NetworkJob job(SmallGpt(4), {.lazy_optimizer_state = true}, [&](const JobEvent& event) {
    events.emplace_back(event);
    if (event.kind != JobEventKind::kOperation) return;
  });
  job.SetUp();
  follower.Follow(events);
  events.clear();
  job.Iterate();
  follower.Follow(events);
  events.clear();
  // Then its second iteration is followed whole, and every persistent buffer is known
  job.Iterate();
  EXPECT_EQ(follower.Follow(events), stored->size());
  for (int32_t i = 0; i < static_cast<int32_t>(stored->buffers.size()); ++i) {
    if (!stored->buffers[static_cast<size_t>(i)].persistent) continue;
    EXPECT_NE(follower.follower().AllocationOf(i), 0u);
  }
}

// The two steps differ only in their input's allocation, and allocations are unknown.
TEST(IterationFollowerTest, StoredPatternOfTwoEqualStepsIsFound) {
  const testing::Habits in_turn{.double_buffered_input = true};
  LearnedJob job(SmallGpt(4), in_turn);
  auto stored = std::make_shared<IterationPattern>(*job.pattern);
  for (PatternBuffer& buffer : stored->buffers) buffer.allocation = 0;
  CheckedFollower follower(stored);

  const auto first = job.Next();
  EXPECT_GE(follower.Follow(first), WithTokens(first) - TokenContext::kSize);
  EXPECT_EQ(follower.Follow(job.Next()), stored->size());
}

}  // namespace
}  // namespace spillway::scheduler
