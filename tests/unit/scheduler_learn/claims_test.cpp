// Every claim of the learner is checked against the events, slowly and without its code.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/prng.h"
#include "scheduler/learn/iteration_learner.h"
#include "tests/unit/scheduler_learn/learned_job.h"

namespace spillway::scheduler {
namespace {

using testing::KeptEvent;

// A random loop over statements on variables, which live for the job, for a round, or into the
// next. Some rounds differ.
class RandomLoop {
 public:
  RandomLoop(uint64_t seed, testing::Sink sink) : prng_(seed), sink_(std::move(sink)) {
    const size_t variables = 4 + prng_.Below(12);
    for (size_t i = 0; i < variables; ++i) {
      variables_.push_back({.is_persistent = prng_.Below(2) == 0,
                            .size_bytes = static_cast<int64_t>(1 + prng_.Below(4)) << 20});
      if (variables_.back().is_persistent) Make(i);
    }
    const size_t statements = 10 + prng_.Below(60);
    for (size_t i = 0; i < statements; ++i) {
      Statement statement{.kind = prng_.Below(4), .shape = prng_.Below(6), .variables = {}};
      for (uint64_t touch = 0; touch <= prng_.Below(3); ++touch)
        statement.variables.insert(prng_.Below(variables));
      statements_.push_back(statement);
    }
    oddity_ = prng_.Below(3);  // odd rounds in ten
    equal_parts_ = 1 + prng_.Below(3);
  }

  void Round() {
    for (uint64_t part = 0; part < equal_parts_; ++part) {
      for (const Statement& statement : statements_) {
        if (oddity_ > 0 && prng_.Below(10 * statements_.size()) < oddity_)
          sink_(JobEvent::Operation(prng_.Below(9), {}));
        Do(statement);
      }
    }
  }

 private:
  struct Variable {
    bool is_persistent = false;
    int64_t size_bytes = 0;
    uint64_t allocation = 0;
  };
  struct Statement {
    uint64_t kind =
        0;  // 0: the first variable is allocated anew, 1: it is freed, else: an operation
    uint64_t shape = 0;
    std::set<size_t> variables;
  };

  void Make(size_t variable) {
    variables_[variable].allocation = ++last_;
    sink_(JobEvent::Allocate(last_, variables_[variable].size_bytes));
  }
  void Free(size_t variable) {
    if (variables_[variable].allocation != 0)
      sink_(JobEvent::Free(std::exchange(variables_[variable].allocation, 0)));
  }
  void Do(const Statement& statement) {
    const size_t first = *statement.variables.begin();
    if (statement.kind < 2 && !variables_[first].is_persistent) {
      Free(first);
      if (statement.kind == 0) Make(first);
      return;
    }
    std::vector<JobTouch> touches;
    uint64_t shape = statement.shape;
    for (size_t variable : statement.variables) {
      if (variables_[variable].allocation == 0) continue;
      touches.push_back({variables_[variable].allocation, true});
      shape = shape * 100 + static_cast<uint64_t>(variables_[variable].size_bytes >> 20);
    }
    sink_(JobEvent::Operation(shape, touches));
  }

  base::Prng prng_;
  testing::Sink sink_;
  std::vector<Variable> variables_;
  std::vector<Statement> statements_;
  uint64_t last_ = 0, oddity_ = 0, equal_parts_ = 1;
};

std::vector<uint64_t> Named(const KeptEvent& event) {
  if (event.event.kind == JobEventKind::kAllocate) return {event.event.allocation};
  std::vector<uint64_t> names;
  for (const JobTouch& touch : event.touches) names.push_back(touch.allocation);
  return names;
}

// The last two repetitions of `size` events are equal under one matching of their allocations.
void ExpectRepeated(const std::vector<KeptEvent>& events, size_t size) {
  ASSERT_GE(events.size(), 2 * size);
  std::map<uint64_t, uint64_t> later;
  std::set<uint64_t> taken;
  for (size_t i = events.size() - 2 * size; i < events.size() - size; ++i) {
    ASSERT_EQ(TokenOf(events[i].Get()), TokenOf(events[i + size].Get()));
    const auto a = Named(events[i]), b = Named(events[i + size]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) {
      const auto [known, is_new] = later.emplace(a[k], b[k]);
      ASSERT_EQ(known->second, b[k]);
      ASSERT_EQ(taken.insert(b[k]).second, is_new);
    }
  }
}

// The pattern is a rotation of the last repetition.
void ExpectIsLastRepetition(const std::vector<KeptEvent>& events, const IterationPattern& pattern) {
  const auto size = static_cast<size_t>(pattern.size());
  bool is_found = false;
  for (size_t shift = 0; shift < size && !is_found; ++shift) {
    is_found = true;
    for (size_t i = 0; i < size && is_found; ++i)
      is_found = pattern.events[(i + shift) % size].token ==
                 TokenOf(events[events.size() - size + i].Get());
  }
  EXPECT_TRUE(is_found);
}

// A buffer's events lie within its life.
void ExpectConsistent(const IterationPattern& pattern) {
  EXPECT_EQ(CheckProfile(pattern.profile).text(), "");
  ASSERT_EQ(pattern.profile.buffers.size(), pattern.buffers.size());
  for (size_t i = 0; i < pattern.buffers.size(); ++i) {
    const PatternBuffer& buffer = pattern.buffers[i];
    EXPECT_EQ(buffer.size_bytes, pattern.profile.buffers[i].size_bytes);
    EXPECT_EQ(buffer.persistent, pattern.profile.buffers[i].persistent);
    EXPECT_EQ(buffer.persistent, buffer.allocation != 0);
    EXPECT_LE(buffer.born_event, buffer.dies_event);
    if (buffer.born_event >= 0) {
      const PatternEvent& made = pattern.events[static_cast<size_t>(buffer.born_event)];
      EXPECT_EQ(made.kind, JobEventKind::kAllocate);
      EXPECT_EQ(made.buffer, static_cast<int32_t>(i));
    }
    if (buffer.becomes >= 0) {
      EXPECT_EQ(pattern.buffers[static_cast<size_t>(buffer.becomes)].born_event, -1);
    }
  }
  for (int32_t i = 0; i < pattern.size(); ++i) {
    for (const PatternTouch& touch : pattern.TouchesOf(pattern.events[static_cast<size_t>(i)])) {
      const PatternBuffer& buffer = pattern.buffers[static_cast<size_t>(touch.buffer)];
      EXPECT_LE(buffer.born_event, i);
      EXPECT_GE(buffer.dies_event, i);
    }
  }
}

TEST(ClaimsTest, EveryLearnedIterationOccurredTwiceInARow) {
  int claims = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    IterationLearner learner;
    std::vector<KeptEvent> events;
    RandomLoop loop(seed, [&](const JobEvent& event) {
      if (HasToken(event.kind)) events.emplace_back(event);
      const auto pattern = learner.Add(event);
      if (pattern == nullptr) return;
      ++claims;
      ExpectRepeated(events, static_cast<size_t>(pattern->size()));
      ExpectIsLastRepetition(events, *pattern);
      ExpectConsistent(*pattern);
    });
    for (int round = 0; round < 12; ++round) loop.Round();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(claims, 500);
}

TEST(ClaimsTest, RegularLoopIsFollowedWholeOnceLearned) {
  int whole = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    IterationLearner learner;
    std::optional<IterationFollower> follower;
    int64_t since = 0, followed = 0;
    RandomLoop loop(seed, [&](const JobEvent& event) {
      if (follower && HasToken(event.kind)) {
        ++since;
        followed += follower->Observe(event).position >= 0;
      }
      if (const auto pattern = learner.Add(event)) {
        follower.emplace(pattern);
        since = followed = 0;
      }
    });
    for (int round = 0; round < 20; ++round) loop.Round();
    whole += follower && since > 0 && followed + 2 * follower->pattern().size() >= since;
  }
  EXPECT_GT(whole, 150);
}

}  // namespace
}  // namespace spillway::scheduler
