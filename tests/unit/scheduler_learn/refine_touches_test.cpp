// What a job finds out about touches while it runs, in a pattern
// (scheduler/learn/iteration_pattern.h).
#include <gtest/gtest.h>

#include "scheduler/learn/iteration_pattern.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

constexpr TouchRole kReads{.writes = false, .reads = true};
constexpr TouchRole kFills{.writes = true, .reads = false};
constexpr TouchRole kUpdates{.writes = true, .reads = true};

// One operation, of token 9, touches the weights, and then an activation. A second, of token 10,
// touches both again. The job declares as much of the first as `declared` says.
IterationPattern Undeclared(TouchRole declared = kUpdates) {
  IterationPattern pattern;
  pattern.profile = ProfileOf({Persistent("weights", 100), Temporary("activation", 50)},
                              {MakeOperation("own", 1, {0, 1}, {0, 1}, false),
                               MakeOperation("later", 1, {0, 1}, {0, 1}, false)});
  pattern.buffers.resize(2);
  pattern.buffers[0].persistent = true;
  pattern.touches = {{0, declared.writes, declared.reads}, {1}, {0}, {1}};
  for (int32_t i = 0; i < 2; ++i) {
    PatternEvent event;
    event.token = static_cast<uint64_t>(9 + i);
    event.operation = i;
    event.first_touch = 2 * i;
    event.touch_count = 2;
    pattern.events.push_back(event);
  }
  SetUses(&pattern);
  return pattern;
}

void Refine(IterationPattern* pattern, const TouchRoles& roles, uint64_t of = 9) {
  RefineTouches(pattern, [&](uint64_t token) { return token == of ? roles : TouchRoles{}; });
}

TEST(RefineTouchesTest, TheProfileFollows) {
  IterationPattern pattern = Undeclared();
  EXPECT_EQ(KnownTouchCount(pattern), 0);

  Refine(&pattern, {kReads, kFills});

  const Operation& operation = pattern.profile.operations[0];
  EXPECT_EQ(operation.reads, std::vector<BufferId>{{0}});
  EXPECT_EQ(operation.writes, std::vector<BufferId>{{1}});
  EXPECT_EQ(KnownTouchCount(pattern), 2);
}

TEST(RefineTouchesTest, WhatTheJobOnlySawIsPresumed) {
  IterationPattern pattern = Undeclared();
  Refine(&pattern, {kReads, kFills});
  EXPECT_EQ(pattern.profile.operations[0].presumed_reads, std::vector<BufferId>{{0}});

  IterationPattern declared = Undeclared(kReads);
  Refine(&declared, {kReads, kFills});
  EXPECT_EQ(declared.profile.operations[0].presumed_reads, std::vector<BufferId>{});
}

TEST(RefineTouchesTest, AKnownLaunchCanBecomeReplayable) {
  IterationPattern pattern = Undeclared();
  const auto always = [](uint64_t) { return true; };
  SetReplayable(&pattern, always);
  EXPECT_EQ(ReplayableCount(pattern), 0);
  Refine(&pattern, {kReads, kFills});
  SetReplayable(&pattern, always);
  EXPECT_EQ(ReplayableCount(pattern), 1);
}

TEST(RefineTouchesTest, UpdatesStay) {
  IterationPattern pattern = Undeclared();
  Refine(&pattern, {kUpdates, kReads}, 10);
  EXPECT_EQ(pattern.profile.operations[1].writes, std::vector<BufferId>{{0}});
  EXPECT_EQ(KnownTouchCount(pattern), 1);
}

TEST(RefineTouchesTest, WhatTheJobDeclaresStands) {
  IterationPattern pattern = Undeclared(kReads);
  Refine(&pattern, {kFills, kFills});
  EXPECT_TRUE(pattern.touches[0].reads);
  EXPECT_FALSE(pattern.touches[0].writes);
}

TEST(RefineTouchesTest, RolesOfAnotherNumberOfTouchesSayNothing) {
  IterationPattern pattern = Undeclared();
  Refine(&pattern, {kReads});
  EXPECT_EQ(KnownTouchCount(pattern), 0);
}

// A job that restarts knows less of its kernels, and is the same.
TEST(RefineTouchesTest, TheFingerprintIsThatOfTheSameIteration) {
  IterationPattern pattern = Undeclared();
  const uint64_t before = FingerprintOf(pattern);
  Refine(&pattern, {kReads, kFills});
  EXPECT_EQ(FingerprintOf(pattern), before);
  pattern.touches[0].buffer = 1;
  EXPECT_NE(FingerprintOf(pattern), before);
}

}  // namespace
}  // namespace spillway::scheduler
