#include "scheduler/learn/iteration_detector.h"

#include <gtest/gtest.h>

#include <random>

namespace spillway::scheduler {
namespace {

using Events = std::vector<uint64_t>;

// `count` events that are found nowhere else.
Events Fresh(int count) {
  static uint64_t last = 1000;
  Events events;
  for (int i = 0; i < count; ++i) events.push_back(++last);
  return events;
}

Events operator+(Events a, const Events& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Job {
  IterationDetector detector;
  Step last;
  int learned = 0;
  int whole = 0;

  void Run(const Events& events) {
    for (uint64_t event : events) {
      last = detector.Add(event);
      learned += last.learned_profile;
      whole += last.ends_iteration;
    }
  }
  void Repeat(int times, const Events& events) {
    for (int i = 0; i < times; ++i) Run(events);
  }
  size_t SizeFollowed() const {
    return last.profile < 0 ? 0 : detector.profiles().events(last.profile).size();
  }
};

TEST(IterationDetectorTest, ClaimsAnIterationWithinThreeRepetitions) {
  // Given a job that sets up and then repeats 500 events
  Job job;
  const Events iteration = Fresh(500);
  job.Run(Fresh(777));
  // When it has run two of them, and a third
  job.Repeat(2, iteration);
  EXPECT_EQ(job.last.tracking, Tracking::kSearching);
  job.Run(iteration);
  // Then the iteration is claimed, once, at its true length, and followed
  EXPECT_EQ(job.learned, 1);
  EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
  EXPECT_EQ(job.SizeFollowed(), 500u);
  job.Repeat(10, iteration);
  EXPECT_EQ(job.whole, 10);
  EXPECT_EQ(job.detector.counts().inserted_events, 0);
}

TEST(IterationDetectorTest, PositionsNameTheSameEventInEveryIteration) {
  Job job;
  const Events iteration = Fresh(100);
  job.Repeat(4, iteration);
  for (uint64_t event : iteration) {
    job.Run({event});
    ASSERT_GE(job.last.position, 0);
    EXPECT_EQ(job.detector.profiles().events(job.last.profile)[static_cast<size_t>(job.last.position)],
              event);
  }
}

TEST(IterationDetectorTest, ClaimsNothingInEventsThatDoNotRepeat) {
  Job job;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) job.Run({random() % 40});
  EXPECT_EQ(job.learned, 0);
  EXPECT_EQ(job.last.tracking, Tracking::kSearching);
}

TEST(IterationDetectorTest, ClaimsNothingBeforeASecondWholeRepetition) {
  Job job;
  const Events iteration = Fresh(300);
  job.Run(iteration + Events(iteration.begin(), iteration.end() - 1));
  EXPECT_EQ(job.learned, 0);
}

TEST(IterationDetectorTest, EqualLayersWithTheirOwnWeightsAreNoIteration) {
  // Given 24 layers of equal kernels, whose events differ by the weights they touch
  Job job;
  Events iteration;
  for (uint64_t layer = 0; layer < 24; ++layer) {
    for (uint64_t kernel = 0; kernel < 20; ++kernel) iteration.push_back(kernel * 1000 + layer);
  }
  // Then one iteration claims nothing, and three the whole of it
  job.Run(iteration);
  EXPECT_EQ(job.learned, 0);
  job.Repeat(3, iteration);
  EXPECT_EQ(job.learned, 1);
  EXPECT_EQ(job.SizeFollowed(), 480u);
}

TEST(IterationDetectorTest, InsertedEventsAreSkippedAndTheIterationCountsAsWhole) {
  Job job;
  const Events iteration = Fresh(200);
  job.Repeat(3, iteration);
  const Events half(iteration.begin(), iteration.begin() + 100),
      rest(iteration.begin() + 100, iteration.end());
  const int whole = job.whole;
  // When some events of logging come in the middle, other ones each time
  for (int i = 0; i < 5; ++i) job.Run(half + Fresh(7 + i) + rest);
  // Then five more iterations have ended, and the same one is followed
  EXPECT_EQ(job.whole, whole + 5);
  EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
  EXPECT_EQ(job.learned, 1);
  EXPECT_EQ(job.detector.counts().inserted_events, 7 + 8 + 9 + 10 + 11);
}

TEST(IterationDetectorTest, NoPositionIsGivenWhileAstray) {
  Job job;
  const Events iteration = Fresh(200);
  job.Repeat(3, iteration);
  job.Run(Events(iteration.begin(), iteration.begin() + 50));
  for (uint64_t event : Fresh(10)) {
    job.Run({event});
    EXPECT_EQ(job.last.tracking, Tracking::kAstray);
    EXPECT_EQ(job.last.position, -1);
  }
}

TEST(IterationDetectorTest, ShortLastBatchIsNoWholeIterationAndTheNextOneIsFollowedAgain) {
  // Given an epoch's last batch: as long, but of other sizes
  Job job;
  const Events iteration = Fresh(200), last_batch = Fresh(200);
  job.Repeat(20, iteration);
  const int whole = job.whole;
  // When epochs of a hundred iterations begin behind it
  for (int epoch = 0; epoch < 3; ++epoch) {
    job.Run(last_batch);
    EXPECT_EQ(job.last.tracking, Tracking::kLost);
    job.Repeat(100, iteration);
    EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
    EXPECT_EQ(job.SizeFollowed(), 200u);
  }
  EXPECT_GE(job.whole, whole + 3 * 99);
  EXPECT_EQ(job.learned, 1);
}

TEST(IterationDetectorTest, EvaluationBecomesAnIterationOfItsOwnAndTrainingIsKnownAfterwards) {
  Job job;
  const Events forward = Fresh(150), backward = Fresh(300), metrics = Fresh(5);
  const Events training = forward + backward, evaluation = forward + metrics;
  job.Repeat(10, training);
  ASSERT_EQ(job.SizeFollowed(), 450u);
  // When an evaluation of the same forward pass goes on for long
  job.Repeat(10, evaluation);
  EXPECT_EQ(job.SizeFollowed(), 155u);
  EXPECT_EQ(job.learned, 2);
  // Then training is recognised by its first steps, without being learned anew
  job.Repeat(2, training);
  EXPECT_EQ(job.SizeFollowed(), 450u);
  EXPECT_EQ(job.learned, 2);
}

TEST(IterationDetectorTest, GradientAccumulationBecomesOneIteration) {
  // Given four equal steps and an update that is a tenth of them
  Job job;
  const Events step = Fresh(100), update = Fresh(40);
  const Events iteration = step + step + step + step + update;
  job.Run(Fresh(33));
  // When four such have run
  job.Repeat(4, iteration);
  // Then what is followed is the whole of it
  EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
  EXPECT_EQ(job.SizeFollowed(), 440u);
  const int whole = job.whole;
  job.Repeat(5, iteration);
  EXPECT_EQ(job.whole, whole + 5);
}

TEST(IterationDetectorTest, RareLoggingDoesNotBecomePartOfTheIteration) {
  Job job;
  const Events step = Fresh(100), logging = Fresh(3);
  for (int i = 0; i < 10; ++i) {
    job.Run(logging);
    job.Repeat(10, step);
  }
  EXPECT_EQ(job.SizeFollowed(), 100u);
  EXPECT_EQ(job.learned, 1);
}

TEST(IterationDetectorTest, FewInputLengthsAreProfilesChosenByTheirFirstEvents) {
  Job job;
  const Events a = Fresh(120), b = Fresh(140), c = Fresh(160);
  for (const Events& kind : {a, b, c}) job.Repeat(3, kind);
  EXPECT_EQ(job.learned, 3);
  // When they come in any order, each is followed from its fourth event on
  for (const Events& kind : {b, a, c, c, b, a}) {
    job.Run(Events(kind.begin(), kind.begin() + 4));
    EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
    EXPECT_EQ(job.SizeFollowed(), kind.size());
    job.Run(Events(kind.begin() + 4, kind.end()));
  }
  EXPECT_EQ(job.learned, 3);
}

TEST(IterationDetectorTest, SaysWhenItIsLostAndFindsTheNewIteration) {
  Job job;
  job.Repeat(5, Fresh(80));
  job.Run(Fresh(65));
  EXPECT_EQ(job.last.tracking, Tracking::kLost);
  EXPECT_EQ(job.detector.counts().times_lost, 1);
  const Events changed = Fresh(90);
  job.Repeat(3, changed);
  EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
  EXPECT_EQ(job.SizeFollowed(), 90u);
}

TEST(IterationDetectorTest, FingerprintIsTheSameWhereverTheRestartedJobBegins) {
  const Events iteration = Fresh(64);
  Job first, second;
  first.Repeat(4, iteration);
  second.Run(Fresh(11) + Events(iteration.begin() + 20, iteration.end()));
  second.Repeat(4, iteration);
  EXPECT_EQ(first.detector.profiles().fingerprint(0), second.detector.profiles().fingerprint(0));
  Job other;
  other.Repeat(4, Fresh(64));
  EXPECT_NE(first.detector.profiles().fingerprint(0), other.detector.profiles().fingerprint(0));
}

TEST(IterationDetectorTest, IterationLongerThanAllowedIsNeverClaimed) {
  IterationDetector detector(100);
  const Events iteration = Fresh(101);
  for (int i = 0; i < 10; ++i) {
    for (uint64_t event : iteration) EXPECT_FALSE(detector.Add(event).learned_profile);
  }
}

TEST(IterationDetectorTest, FollowsMillionsOfEventsWithNoiseAndNeverClaimsAnotherIteration) {
  // Given an iteration of 5,000 events in which single events are inserted or left out now and then
  Job job;
  std::mt19937_64 random(7);
  const Events iteration = Fresh(5000);
  job.Repeat(3, iteration);
  for (int i = 0; i < 200; ++i) {
    Events noisy;
    for (uint64_t event : iteration) {
      const auto chance = random() % 20000;
      if (chance == 0) noisy.push_back(1'000'000'000 + random() % 1000);
      if (chance != 1) noisy.push_back(event);
    }
    job.Run(noisy);
  }
  EXPECT_EQ(job.learned, 1);
  EXPECT_EQ(job.last.tracking, Tracking::kFollowing);
  EXPECT_GE(job.whole, 100);
}

}  // namespace
}  // namespace spillway::scheduler
