#include "scheduler/learn/iteration_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/prng.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/training_step.h"
#include "tests/unit/scheduler_learn/learned_job.h"

namespace spillway::scheduler {
namespace {

using testing::Habits;
using testing::NetworkJob;
using testing::SmallGpt;

IterationProfile Network(const char* name) {
  return networks::MakeTrainingStep(*networks::MakeNetwork(name, 2), networks::UpdatePlace::kAtEnd)
      .profile;
}

struct Learning {
  IterationLearner learner;
  std::vector<IterationLearner::Pattern> learned;
  int64_t events = 0;

  void Add(const JobEvent& event) {
    ++events;
    if (auto pattern = learner.Add(event)) learned.push_back(std::move(pattern));
  }
  testing::Sink Sink() {
    return [this](const JobEvent& event) { Add(event); };
  }
};

// Per operation, its touches: size, whether persistent, birth, death.
using Touched = std::multiset<std::tuple<int64_t, bool, int32_t, int32_t>>;
std::vector<Touched> TouchedByOperation(const IterationProfile& profile) {
  std::vector<Touched> all;
  for (const Operation& operation : profile.operations) {
    std::set<BufferId> ids(operation.reads.begin(), operation.reads.end());
    ids.insert(operation.writes.begin(), operation.writes.end());
    Touched touched;
    for (BufferId id : ids) {
      const Buffer& buffer = profile.at(id);
      const bool persists = buffer.persistent;
      touched.insert({buffer.size_bytes, persists, persists ? 0 : buffer.born.index,
                      persists ? 0 : buffer.dies.index});
    }
    all.push_back(std::move(touched));
  }
  return all;
}

bool Contains(const std::vector<BufferId>& list, BufferId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

class IterationLearnerNetworkTest : public ::testing::TestWithParam<const char*> {};

TEST_P(IterationLearnerNetworkTest, ProfileIsTheNetworksOwnAfterTwoIterations) {
  // Given a job that trains a network, one allocation per tensor, freed after its last use
  Learning learning;
  NetworkJob job(Network(GetParam()), {}, learning.Sink());
  job.SetUp();
  job.Iterate();
  EXPECT_TRUE(learning.learned.empty());
  job.Iterate();
  // Then there is one pattern, whose profile has the network's operations, sizes and lifetimes
  ASSERT_EQ(learning.learned.size(), 1u);
  const IterationPattern& pattern = *learning.learned[0];
  EXPECT_EQ(CheckProfile(pattern.profile).text(), "");
  EXPECT_EQ(pattern.profile.buffers.size(), job.profile().buffers.size());
  EXPECT_EQ(pattern.profile.operations.size(), job.profile().operations.size());
  EXPECT_EQ(TouchedByOperation(pattern.profile), TouchedByOperation(job.profile()));
  EXPECT_EQ(PeakBytes(pattern.profile), PeakBytes(job.profile()));
}

TEST_P(IterationLearnerNetworkTest, FrameworkHabitsAreLearnedByTheThirdIteration) {
  // Given lazy optimizer state, a loss freed late, and double-buffered inputs
  Learning learning;
  NetworkJob job(Network(GetParam()),
                 {.lazy_optimizer_state = true, .late_loss = true, .double_buffered_input = true},
                 learning.Sink());
  job.SetUp();
  job.Iterate();
  job.Iterate();
  EXPECT_TRUE(learning.learned.empty());
  // When the third iteration, the first that repeats the one before, is over
  job.Iterate();
  // Then the iteration is known. It begins where only the input and the loss are carried over
  ASSERT_EQ(learning.learned.size(), 1u);
  const IterationPattern& pattern = *learning.learned[0];
  EXPECT_EQ(CheckProfile(pattern.profile).text(), "");
  EXPECT_EQ(pattern.profile.operations.size(), job.profile().operations.size() + 1);
  int handed_on = 0;
  for (const PatternBuffer& buffer : pattern.buffers) handed_on += buffer.becomes >= 0;
  EXPECT_LE(handed_on, 2);
  EXPECT_GE(handed_on, 1);
}

INSTANTIATE_TEST_SUITE_P(Networks, IterationLearnerNetworkTest,
                         ::testing::Values("vgg16", "resnet152", "bert_base", "gpt2_small",
                                           "gpt2_small_flash"));

TEST(IterationLearnerTest, EqualLayersAreNoIteration) {
  Learning learning;
  NetworkJob job(SmallGpt(24), {}, learning.Sink());
  job.SetUp();
  job.Iterate();
  EXPECT_TRUE(learning.learned.empty());
  for (int i = 0; i < 5; ++i) job.Iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.operations.size(), job.profile().operations.size());
}

TEST(IterationLearnerTest, EqualLayersInARowAreDistinguishedByTheirTouches) {
  Learning learning;
  for (uint64_t layer = 1; layer <= 12; ++layer) learning.Add(JobEvent::Allocate(layer, 1 << 20));
  learning.Add(JobEvent::Allocate(13, 1 << 22));
  const auto iterate = [&] {
    for (uint64_t layer = 1; layer <= 12; ++layer) {
      for (uint64_t kernel = 0; kernel < 8; ++kernel) {
        const std::vector<JobTouch> touches = {{layer, kernel == 7}, {13, true}};
        learning.Add(JobEvent::Operation(kernel, touches));
      }
    }
  };
  iterate();
  EXPECT_TRUE(learning.learned.empty());
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->size(), 96);
}

TEST(IterationLearnerTest, ReportedRolesEnterTheProfile) {
  Learning learning;
  for (uint64_t id = 1; id <= 10; ++id) learning.Add(JobEvent::Allocate(id, 1 << 20));
  for (uint64_t step = 0; step < 12; ++step) {
    for (uint64_t kernel = 0; kernel < 30; ++kernel) {
      const bool is_known = kernel == 5;
      const std::vector<JobTouch> touches = {
          {1, true, !is_known}, {2, !is_known}, {3 + kernel % 8, true}};
      learning.Add(JobEvent::Operation(100 + kernel, touches));
    }
  }
  ASSERT_EQ(learning.learned.size(), 1u);

  const IterationPattern& pattern = *learning.learned[0];
  const auto buffer_of = [&](uint64_t allocation) {
    for (int32_t i = 0;; ++i) {
      if (pattern.buffers[static_cast<size_t>(i)].allocation == allocation) return BufferId{i};
    }
  };
  int known = 0;
  for (const Operation& operation : pattern.profile.operations) {
    const bool overwrites = !Contains(operation.reads, buffer_of(1));
    EXPECT_EQ(overwrites, !Contains(operation.writes, buffer_of(2)));
    EXPECT_TRUE(Contains(operation.writes, buffer_of(1)));
    EXPECT_TRUE(Contains(operation.reads, buffer_of(2)));
    known += overwrites;
  }
  EXPECT_EQ(known, 1);
}

TEST(IterationLearnerTest, WorkspaceTakesMemoryWithoutATouch) {
  // Given operations with a workspace each, freed at once, and with an output that is freed late
  Learning learning;
  learning.Add(JobEvent::Allocate(1, 4 << 20));
  uint64_t next = 2;
  const auto iterate = [&] {
    const uint64_t output = next++, workspace = next++;
    learning.Add(JobEvent::Allocate(output, 2 << 20));
    learning.Add(JobEvent::Allocate(workspace, 3 << 20));
    const std::vector<JobTouch> made = {
        {1, false, true}, {output, true, false}, {workspace, true, true}};
    learning.Add(JobEvent::Operation(7, made));
    learning.Add(JobEvent::Free(workspace));
    const std::vector<JobTouch> used = {{1, true, true}, {output, false, true}};
    learning.Add(JobEvent::Operation(8, used));
    for (uint64_t kernel = 9; kernel < 13; ++kernel)
      learning.Add(JobEvent::Operation(kernel, std::vector<JobTouch>{{1, true, true}}));
    learning.Add(JobEvent::Free(output));
  };
  for (int i = 0; i < 5; ++i) iterate();
  ASSERT_FALSE(learning.learned.empty());
  // Then the workspace is resident and unmovable during its operation, which writes one buffer
  IterationPattern pattern = *learning.learned.back();
  const IterationProfile& profile = pattern.profile;
  const auto workspace =
      std::find_if(profile.buffers.begin(), profile.buffers.end(),
                   [](const Buffer& buffer) { return buffer.size_bytes == 3 << 20; });
  ASSERT_NE(workspace, profile.buffers.end());
  EXPECT_FALSE(workspace->movable);
  EXPECT_EQ(workspace->born, workspace->dies);
  const Operation& with_workspace = profile.at(workspace->born);
  EXPECT_EQ(with_workspace.writes.size(), 1u);
  EXPECT_EQ(with_workspace.reads.size(), 1u);
  EXPECT_EQ(PeakBytes(profile), 9 << 20);
  // And a proven operation may be replayed, unless it changes its input
  SetReplayable(&pattern, [](uint64_t) { return true; });
  EXPECT_EQ(ReplayableCount(pattern), 1);
  EXPECT_TRUE(pattern.profile.at(workspace->born).replayable);
}

TEST(IterationLearnerTest, BufferFreedAtTheEndDiesThereAndAKeptOneIsCarriedOver) {
  // Given buffers that are freed at the iteration's end, except the last result, which the next
  // iteration reads
  Learning learning;
  learning.Add(JobEvent::Allocate(1, 4 << 20));
  uint64_t next = 2, result = 0;
  const auto iterate = [&] {
    const uint64_t made = next++, former = std::exchange(result, next++);
    learning.Add(JobEvent::Allocate(made, 8 << 20));
    learning.Add(
        JobEvent::Operation(1, std::vector<JobTouch>{{1, false, true}, {made, true, false}}));
    if (former) {
      learning.Add(
          JobEvent::Operation(2, std::vector<JobTouch>{{former, false, true}, {1, true, true}}));
      learning.Add(JobEvent::Free(former));
    }
    learning.Add(JobEvent::Allocate(result, 2 << 20));
    learning.Add(
        JobEvent::Operation(3, std::vector<JobTouch>{{made, false, true}, {result, true, false}}));
    for (uint64_t kernel = 4; kernel < 8; ++kernel)
      learning.Add(JobEvent::Operation(kernel, std::vector<JobTouch>{{1, true, true}}));
    learning.Add(JobEvent::Free(made));
  };
  for (int i = 0; i < 5; ++i) iterate();
  ASSERT_FALSE(learning.learned.empty());
  // Then the former are idle after their last use with dead content; the latter is not
  const IterationProfile& profile = learning.learned.back()->profile;
  const auto dies_late = [&](int64_t size_bytes) {
    const std::vector<IdleInterval> intervals = IdleIntervals(profile, 1);
    return std::count_if(intervals.begin(), intervals.end(), [&](const IdleInterval& interval) {
      return profile.at(interval.buffer).size_bytes == size_bytes && !interval.wraps &&
             interval.content_dead;
    });
  };
  EXPECT_EQ(dies_late(8 << 20), 1);
  EXPECT_EQ(dies_late(2 << 20), 0);
  const auto handed_on = [](const Buffer& buffer) { return buffer.handed_on; };
  EXPECT_EQ(std::count_if(profile.buffers.begin(), profile.buffers.end(), handed_on), 1);
}

TEST(IterationLearnerTest, BuffersUsedInTurnMakeTwoStepsOneIteration) {
  Learning learning;
  for (uint64_t id = 1; id <= 10; ++id) learning.Add(JobEvent::Allocate(id, 1 << 20));
  for (uint64_t step = 0; step < 12; ++step) {
    for (uint64_t kernel = 0; kernel < 30; ++kernel) {
      const std::vector<JobTouch> touches = {{1 + step % 2, false}, {3 + kernel % 8, true}};
      learning.Add(JobEvent::Operation(100 + kernel, touches));
    }
  }
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->size(), 60);
}

TEST(IterationLearnerTest, TwoBuffersMergedIntoOneAreNoRepetition) {
  // Given a first round that reads two buffers where later rounds read one twice
  Learning learning;
  learning.Add(JobEvent::Allocate(1, 1 << 20));
  learning.Add(JobEvent::Allocate(2, 1 << 20));
  learning.Add(JobEvent::Allocate(9, 2 << 20));
  uint64_t first = 1, second = 2, last = 10;
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(learning.learned.empty());
    for (uint64_t kernel = 0; kernel < 40; ++kernel) {
      const std::vector<JobTouch> touches = {{kernel == 0   ? first
                                              : kernel == 1 ? second
                                                            : 9,
                                              true}};
      learning.Add(JobEvent::Operation(kernel, touches));
    }
    learning.Add(JobEvent::Free(first));
    if (second != first) learning.Add(JobEvent::Free(second));
    first = second = ++last;
    learning.Add(JobEvent::Allocate(last, 1 << 20));
  }
  EXPECT_EQ(learning.learned.size(), 1u);
}

TEST(IterationLearnerTest, GradientAccumulationIsLearnedAsOneIteration) {
  Learning learning;
  NetworkJob job(SmallGpt(4), {.lazy_optimizer_state = true}, learning.Sink());
  job.SetUp();
  for (int i = 0; i < 3; ++i) job.IterateWithAccumulation(4);
  // Then the last pattern is the whole: four times forward and backward, and an update
  ASSERT_GE(learning.learned.size(), 1u);
  size_t updates = 0;
  for (const Operation& operation : job.profile().operations)
    updates += operation.phase == Phase::kUpdate;
  const IterationPattern& pattern = *learning.learned.back();
  EXPECT_EQ(pattern.profile.operations.size(),
            4 * (job.profile().operations.size() - updates) + updates);
  EXPECT_EQ(CheckProfile(pattern.profile).text(), "");
  const size_t learned = learning.learned.size();
  for (int i = 0; i < 10; ++i) job.IterateWithAccumulation(4);
  EXPECT_EQ(learning.learned.size(), learned);
}

TEST(IterationLearnerTest, RareLoggingBelongsToNoIteration) {
  Learning learning;
  NetworkJob job(SmallGpt(4), {}, learning.Sink());
  job.SetUp();
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) job.Log(500);
    job.Iterate();
  }
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.operations.size(), job.profile().operations.size());
}

TEST(IterationLearnerTest, LoggingInTheFirstIterationsOnlyDelaysLearning) {
  Learning learning;
  NetworkJob job(SmallGpt(4), {}, learning.Sink());
  int iteration = 0;
  job.Before([&](int32_t operation) {
    if (iteration < 3 && operation == 10 + 5 * iteration)
      learning.Add(JobEvent::Operation(900, {}));
  });
  job.SetUp();
  for (; iteration < 5; ++iteration) job.Iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.operations.size(), job.profile().operations.size());
}

TEST(IterationLearnerTest, NewLearningRateIsTheSameIteration) {
  Learning learning;
  NetworkJob job(SmallGpt(3), {}, learning.Sink());
  job.SetUp();
  for (int i = 0; i < 40; ++i) {
    if (i % 7 == 6) learning.Add(JobEvent::Operation(321, {}));
    job.Iterate();
  }
  EXPECT_EQ(learning.learned.size(), 1u);
}

TEST(IterationLearnerTest, TrainingAndEvaluationAreTwoPatterns) {
  Learning learning;
  NetworkJob job(SmallGpt(6), {}, learning.Sink());
  job.SetUp();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < 8; ++i) job.Iterate();
    for (int i = 0; i < 5; ++i) {
      job.Evaluate();
      job.Log(7000);
    }
  }
  ASSERT_EQ(learning.learned.size(), 2u);
  EXPECT_EQ(learning.learned[0]->profile.operations.size(), job.profile().operations.size());
  EXPECT_LT(learning.learned[1]->profile.operations.size(), job.profile().operations.size() / 2);
  EXPECT_EQ(learning.learner.Patterns().size(), 2u);
}

TEST(IterationLearnerTest, RandomProgramsTeachNothing) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    base::Prng prng(seed);
    Learning learning;
    std::vector<uint64_t> live;
    uint64_t last = 0;
    const uint64_t kinds = 2 + prng.Below(20), sizes = 1 + prng.Below(5);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t what = prng.Below(8);
      if (live.size() < 3 || what == 0) {
        live.push_back(++last);
        learning.Add(JobEvent::Allocate(last, static_cast<int64_t>((1 + prng.Below(sizes)) << 20)));
      } else if (what == 1 && live.size() > 4) {
        const size_t which = prng.Below(live.size());
        learning.Add(JobEvent::Free(live[which]));
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const std::vector<JobTouch> touches = {{live[prng.Below(live.size())], prng.Below(2) == 0}};
        learning.Add(JobEvent::Operation(prng.Below(kinds), touches));
      }
    }
    ASSERT_TRUE(learning.learned.empty()) << "seed " << seed;
  }
}

TEST(IterationLearnerTest, IterationIsLearnedAfterAMillionEventsWithoutRepetition) {
  Learning learning;
  base::Prng prng(4);
  for (uint64_t id = 1; id <= 100; ++id) learning.Add(JobEvent::Allocate(1'000'000 + id, 1 << 20));
  for (int i = 0; i < 1'000'000; ++i) {
    const std::vector<JobTouch> touches = {{1'000'001 + prng.Below(100), true}};
    learning.Add(JobEvent::Operation(prng.Below(50), touches));
  }
  EXPECT_TRUE(learning.learned.empty());
  NetworkJob job(SmallGpt(6), {.lazy_optimizer_state = true, .late_loss = true}, learning.Sink());
  job.SetUp();
  for (int i = 0; i < 3; ++i) job.Iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.operations.size(), job.profile().operations.size());
}

TEST(IterationLearnerTest, RepeatedEventsOnRandomMemoryTeachNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng prng(seed);
    Learning learning;
    for (uint64_t id = 1; id <= 50; ++id) learning.Add(JobEvent::Allocate(id, 1 << 20));
    for (uint64_t i = 0; i < 20'000; ++i) {
      const std::vector<JobTouch> touches = {{1 + prng.Below(50), true}};
      learning.Add(JobEvent::Operation(i % 100, touches));
    }
    ASSERT_TRUE(learning.learned.empty()) << "seed " << seed;
  }
}

TEST(IterationLearnerTest, EventsWithoutMemoryAreNoIteration) {
  Learning learning;
  for (int i = 0; i < 5; ++i) {
    for (uint64_t kernel = 0; kernel < 100; ++kernel) learning.Add(JobEvent::Operation(kernel, {}));
  }
  EXPECT_TRUE(learning.learned.empty());
}

TEST(IterationLearnerTest, UnreportedAllocationIsKnownByItsUse) {
  Learning learning;
  NetworkJob job(SmallGpt(3), {}, [&](const JobEvent& event) {
    if (event.kind != JobEventKind::kAllocate || event.allocation > 10) learning.Add(event);
  });
  job.SetUp();
  for (int i = 0; i < 4; ++i) job.Iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.buffers.size(), job.profile().buffers.size());
  EXPECT_EQ(CheckProfile(learning.learned[0]->profile).text(), "");
}

TEST(IterationLearnerTest, AllocationsThatAreNeverFreedDoNotHideTheIteration) {
  Learning learning;
  learning.Add(JobEvent::Allocate(1, 1 << 20));
  for (uint64_t step = 0; step < 4; ++step) {
    for (uint64_t kernel = 0; kernel < 40; ++kernel) {
      const std::vector<JobTouch> touches = {{1, true}};
      learning.Add(JobEvent::Operation(kernel, touches));
    }
    const uint64_t loss = 2 + 2 * step, activation = loss + 1;
    learning.Add(JobEvent::Allocate(activation, 8 << 20));
    learning.Add(JobEvent::Allocate(loss, 2 << 20));
    const std::vector<JobTouch> touches = {{1, false}, {loss, true}, {activation, true}};
    learning.Add(JobEvent::Operation(99, touches));
    learning.Add(JobEvent::Free(activation));
  }
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(CheckProfile(learning.learned[0]->profile).text(), "");
}

TEST(IterationLearnerTest, LostEventsAreNoRepetition) {
  Learning learning;
  NetworkJob job(SmallGpt(3), {}, learning.Sink());
  job.SetUp();
  job.Iterate();
  learning.learner.AddGap();
  job.Iterate();
  EXPECT_TRUE(learning.learned.empty());
  job.Iterate();
  EXPECT_EQ(learning.learned.size(), 1u);
}

TEST(IterationLearnerTest, AllocationsOlderThanTheRecordingAreKnown) {
  Learning learning;
  bool is_recording = false;
  NetworkJob job(SmallGpt(3), {}, [&](const JobEvent& event) {
    if (is_recording)
      learning.Add(event);
    else if (event.kind == JobEventKind::kAllocate)
      learning.learner.AddAlive(event.allocation, event.size_bytes, event.content_bytes);
  });
  job.SetUp();
  is_recording = true;
  for (int i = 0; i < 2; ++i) job.Iterate();
  ASSERT_EQ(learning.learned.size(), 1u);
  EXPECT_EQ(learning.learned[0]->profile.buffers.size(), job.profile().buffers.size());
}

TEST(IterationLearnerTest, FingerprintIsIndependentOfWhereRecordingBegins) {
  std::set<uint64_t> fingerprints;
  for (int from : {0, 1, 17, 30, 60, 90}) {
    Learning learning;
    bool is_recording = from == 0;
    NetworkJob job(SmallGpt(3), {.late_loss = true, .double_buffered_input = true},
                   [&](const JobEvent& event) {
                     if (is_recording)
                       learning.Add(event);
                     else if (event.kind == JobEventKind::kAllocate)
                       learning.learner.AddAlive(event.allocation, event.size_bytes,
                                                 event.content_bytes);
                   });
    job.Before([&](int32_t operation) { is_recording = is_recording || operation == from; });
    job.SetUp();
    for (int i = 0; i < 4; ++i) job.Iterate();
    ASSERT_EQ(learning.learned.size(), 1u) << from;
    fingerprints.insert(learning.learned[0]->fingerprint);
  }
  EXPECT_EQ(fingerprints.size(), 1u);
}

TEST(IterationLearnerTest, IterationBeyondTheLengthLimitIsNotLearned) {
  IterationLearner learner({.longest_iteration = 100});
  for (int i = 0; i < 10; ++i) {
    for (uint64_t kernel = 0; kernel < 101; ++kernel) {
      const std::vector<JobTouch> touches = {{1, true}};
      ASSERT_EQ(learner.Add(JobEvent::Operation(kernel, touches)), nullptr);
    }
  }
}

TEST(IterationLearnerTest, AtMostEightPatternsAreKept) {
  Learning learning;
  for (uint64_t kind = 0; kind < 12; ++kind) {
    for (int i = 0; i < 3; ++i) {
      for (uint64_t kernel = 0; kernel < 50; ++kernel) {
        const std::vector<JobTouch> touches = {{1, true}};
        learning.Add(JobEvent::Operation(kind * 1000 + kernel, touches));
      }
    }
  }
  EXPECT_EQ(learning.learned.size(), 12u);
  EXPECT_EQ(learning.learner.Patterns().size(), 8u);
}

// Two threads' loops, the second at a varying pace, on weights of equal sizes and layers of equal
// shapes.
struct TwoThreads {
  Learning learning;
  base::Prng prng{5};
  uint64_t last_allocation = 100;
  size_t at[2] = {0, 0};

  void Event(uint32_t thread, JobEvent event) {
    event.thread = thread;
    learning.Add(event);
  }
  void SetUp() {
    for (uint64_t id = 1; id <= 20; ++id) Event(0, JobEvent::Allocate(id, 1 << 20));
  }
  void Layer(uint32_t thread, size_t layer) {
    const uint64_t made = ++last_allocation;
    Event(thread, JobEvent::Allocate(made, 2 << 20));
    for (uint64_t kernel = 0; kernel < 5; ++kernel) {
      const std::vector<JobTouch> touches = {{1 + thread * 10 + layer, false}, {made, true}};
      Event(thread, JobEvent::Operation(thread * 100 + kernel + (layer == 0 ? 50 : 0), touches));
    }
    Event(thread, JobEvent::Free(made));
  }
  void Step(uint32_t thread, size_t layers) {
    Layer(thread, at[thread]);
    at[thread] = (at[thread] + 1) % layers;
  }
};

TEST(IterationLearnerTest, BusiestThreadIsLearnedAmongUnorderedThreads) {
  TwoThreads job;
  job.SetUp();
  for (int i = 0; i < 400; ++i) job.Step(job.prng.Below(3) == 0 ? 1 : 0, 8);
  ASSERT_EQ(job.learning.learned.size(), 1u);
  const IterationPattern& pattern = *job.learning.learned[0];
  EXPECT_EQ(pattern.size(), 48);
  EXPECT_EQ(CheckProfile(pattern.profile).text(), "");
  for (const PatternBuffer& buffer : pattern.buffers) {
    EXPECT_TRUE(!buffer.persistent || buffer.allocation <= 8u);
  }
}

TEST(IterationLearnerTest, ThreadsThatTakeTurnsAreOneIteration) {
  // Given a thread for forward and one for backward, each waiting for the other
  TwoThreads job;
  job.SetUp();
  for (int i = 0; i < 5; ++i) {
    for (size_t layer = 0; layer < 8; ++layer) job.Layer(0, layer);
    for (size_t layer = 8; layer-- > 0;) job.Layer(1, layer);
  }
  ASSERT_EQ(job.learning.learned.size(), 1u);
  EXPECT_EQ(job.learning.learned[0]->size(), 96);
}

}  // namespace
}  // namespace spillway::scheduler
