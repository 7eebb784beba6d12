#include "scheduler/learn/iteration_followers.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "tests/unit/scheduler_learn/learned_job.h"

namespace spillway::scheduler {
namespace {

using testing::NetworkJob;
using testing::SmallGpt;

// One model trained on inputs of three lengths, followed once each length is learned.
struct JobOfThreeLengths {
  IterationLearner learner;
  IterationFollowers followers;
  IterationFollowers::Step last;
  int64_t events = 0, followed = 0, changes = 0, learned = 0;
  testing::Sink sink = [this](const JobEvent& event) {
    if (auto pattern = learner.Add(event)) {
      followers.Add(std::move(pattern));
      ++learned;
    }
    last = followers.Observe(event);
    events += HasToken(event.kind);
    followed += last.followed.position >= 0;
    changes += last.changed_pattern;
  };
  NetworkJob jobs[3] = {
      {SmallGpt(3, 48), {}, sink}, {SmallGpt(3, 64), {}, sink}, {SmallGpt(3, 80), {}, sink}};

  JobOfThreeLengths() {
    jobs[0].SetUp();
    for (int i : {1, 2}) jobs[i].SetUpBeside(jobs[0]);
    for (NetworkJob& job : jobs) {
      for (int i = 0; i < 3; ++i) job.Iterate();
    }
  }
};

TEST(IterationFollowersTest, InputsOfFewLengthsAreFollowedInAnyOrder) {
  JobOfThreeLengths job;
  ASSERT_EQ(job.learned, 3);
  base::Prng prng(1);
  for (int i = 0; i < 3; ++i) job.jobs[prng.Below(3)].Iterate();
  job.events = job.followed = 0;
  for (int i = 0; i < 50; ++i) job.jobs[prng.Below(3)].Iterate();
  // Then each is recognised by its first few events, and nothing more is learned
  EXPECT_GE(job.followed, job.events - 50 * 6);
  EXPECT_EQ(job.learned, 3);
}

TEST(IterationFollowersTest, FirstEventsSelectThePattern) {
  JobOfThreeLengths job;
  for (size_t i : {0u, 1u, 2u, 0u, 2u, 1u}) {
    int64_t at = 0;
    job.jobs[i].Before([&](int32_t) {
      if (++at == 5) {
        EXPECT_EQ(job.last.followed.tracking, Tracking::kFollowing);
        const IterationPattern& active = job.followers.at(job.last.slot)->pattern();
        EXPECT_EQ(active.profile.operations.size(), job.jobs[i].profile().operations.size());
        EXPECT_EQ(PeakBytes(active.profile), PeakBytes(job.jobs[i].profile()));
      }
    });
    job.jobs[i].Iterate();
  }
}

TEST(IterationFollowersTest, OneUnknownEventChangesNoPattern) {
  JobOfThreeLengths job;
  for (int i = 0; i < 2; ++i) job.jobs[1].Iterate();
  job.changes = 0;
  job.jobs[1].Before([&](int32_t operation) {
    if (operation % 20 == 10) job.sink(JobEvent::Operation(4711, {}));
  });
  for (int i = 0; i < 5; ++i) job.jobs[1].Iterate();
  EXPECT_EQ(job.changes, 0);
}

TEST(IterationFollowersTest, NewPatternReplacesTheLeastRecentlyFollowed) {
  IterationFollowers followers;
  const auto pattern = [](uint64_t fingerprint) {
    auto made = std::make_shared<IterationPattern>();
    made->events.push_back({.token = fingerprint, .operation = 0});
    made->fingerprint = fingerprint;
    return made;
  };
  for (uint64_t i = 1; i <= 8; ++i) {
    followers.Add(pattern(i));
    followers.Observe(JobEvent::Operation(i, {}));
  }
  followers.Add(pattern(9));
  EXPECT_EQ(followers.Patterns().size(), 8u);
  for (const auto& kept : followers.Patterns()) EXPECT_NE(kept->fingerprint, 1u);
  // A known pattern is not added twice
  followers.Add(pattern(5));
  EXPECT_EQ(followers.Patterns().size(), 8u);
}

TEST(IterationFollowersTest, WithoutAnyPatternNothingIsFollowed) {
  IterationFollowers followers;
  EXPECT_EQ(followers.Observe(JobEvent::Allocate(1, 1)).slot, -1);
  EXPECT_EQ(followers.active(), -1);
}

}  // namespace
}  // namespace spillway::scheduler
