#include "agent/turns/turns.h"

#include <gtest/gtest.h>

#include "tests/unit/turns/amounts.h"

namespace spillway::agent {
namespace {

constexpr DeviceId kFirst{0}, kSecondDevice{1};

// Jobs on two devices of 100 GiB with a link of 50 GiB a second: 90 GiB swap in 3.6 s. A turn of
// them lasts 3.6 + 8 * 3.6 s.
class TurnsTest : public testing::Test {
 protected:
  TurnJob& Job(uint64_t id, int64_t need_gib, TurnsChoice choice = TurnsChoice::kAlways) {
    TurnJob job;
    job.id = JobId{id};
    TurnPart part;
    part.device = kFirst;
    part.choice = choice;
    part.need_bytes = need_gib * kGiB;
    job.parts.push_back(part);
    jobs_.push_back(job);
    return jobs_.back();
  }
  TurnJob& Of(uint64_t id) {
    for (TurnJob& job : jobs_) {
      if (job.id == JobId{id}) return job;
    }
    return jobs_.at(0);
  }
  void AddDevice(TurnJob& job, DeviceId device) {
    job.parts.push_back(job.parts[0]);
    job.parts.back().device = device;
  }
  // In looks of 50 ms, in which every job but a stopped one is heard, and every running one makes
  // progress. A job waits for memory in so many thousandths of the time.
  void Pass(int64_t ns, int64_t stall_permille = 0) {
    for (const int64_t end_ns = now_ns_ + ns; now_ns_ < end_ns;) {
      now_ns_ += 50'000'000;
      for (TurnJob& job : jobs_) {
        if (job.id != stopped_) job.heard_ns = now_ns_;
        if (job.id != hung_ && Standing(job) != TurnStanding::kWaits) ++job.operations;
        for (TurnPart& part : job.parts) {
          part.loss.waited_ns += 50'000 * stall_permille / clock_divisor_;
          part.loss.waited_of_ns += 50'000'000 / clock_divisor_;
        }
      }
      turns_.Update(devices_, jobs_, now_ns_);
    }
  }
  // Each job follows a plan: thousandths of the time in which its calls wait, its stream stalls,
  // and it recomputes.
  struct Planned {
    int64_t wait = 0, stall = 0, repeat = 0;
  };
  static void EndSteps(int64_t ns, const Planned& planned, TimeLoss& loss) {
    loss.steps_of_ns += ns;
    loss.steps_lost_ns += ns / 1000 * (planned.stall + planned.repeat);
    loss.steps_repeated_ns += ns / 1000 * planned.repeat;
  }
  void PassPlanned(int seconds, Planned first, std::optional<Planned> second = std::nullopt) {
    for (int i = 0; i < seconds * 20; ++i) {
      for (TurnJob& job : jobs_) {
        const Planned& planned = job.id == JobId{2} && second ? *second : first;
        job.parts[0].loss.waited_ns += 50'000 * planned.wait / clock_divisor_;
        EndSteps(50'000'000 / clock_divisor_, planned, job.parts[0].loss);
      }
      Pass(50'000'000);
    }
  }
  // Iterations of so many seconds: calls tell as they wait, the plan at each end.
  void PassIterations(int count, int seconds, Planned planned) {
    for (int iteration = 0; iteration < count; ++iteration) {
      Pass(seconds * kSecond, planned.wait);
      for (TurnJob& job : jobs_) EndSteps(seconds * kSecond, planned, job.parts[0].loss);
    }
  }
  TurnStanding Standing(const TurnJob& job) const { return turns_.ViewOf(job.id, kFirst).standing; }
  TurnStanding StandingOf(uint64_t id) { return Standing(Of(id)); }
  TurnReason ReasonOf(uint64_t id) { return turns_.ViewOf(JobId{id}, kFirst).reason; }
  bool Runs(uint64_t id) { return StandingOf(id) == TurnStanding::kRuns; }
  bool Waits(uint64_t id) { return StandingOf(id) == TurnStanding::kWaits; }

  std::vector<TurnDevice> devices_ = {{100 * kGiB, 50 * kGiB}, {100 * kGiB, 50 * kGiB}};
  std::vector<TurnJob> jobs_;
  JobId stopped_{}, hung_{};
  int64_t clock_divisor_ = 1;  // the devices' clock is so much slower than the agent's
  Turns turns_;
  int64_t now_ns_ = 1000 * kSecond;
};

TEST_F(TurnsTest, JobsThatFitTogetherShare) {
  Job(1, 50);
  Job(2, 50);
  Pass(10 * kSecond, 900);
  EXPECT_EQ(StandingOf(1), TurnStanding::kShares);
  EXPECT_EQ(ReasonOf(1), TurnReason::kFits);
}

TEST_F(TurnsTest, OneJobAloneNeedsNoTurns) {
  Job(1, 400);
  Pass(10 * kSecond, 900);
  EXPECT_EQ(StandingOf(1), TurnStanding::kShares);
}

TEST_F(TurnsTest, JobsThatDoNotFitTakeTurnsOfTheirSwapsCost) {
  devices_[0].link_bytes_per_second = 300 * kGiB;
  Job(1, 90);
  Job(2, 90);
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
  EXPECT_TRUE(Waits(2));
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kAsked);
  EXPECT_EQ(turns_.ViewOf(kFirst).next, JobId{2});
  EXPECT_EQ(turns_.ViewOf(JobId{1}, kFirst).swap_ns, 6 * kSecond / 10);

  Pass(4 * kSecond);
  EXPECT_TRUE(Runs(1)) << "its turn lasts 5.4 s";
  Pass(kSecond);
  EXPECT_TRUE(Waits(1));
  EXPECT_EQ(ReasonOf(1), TurnReason::kEnded);
  EXPECT_TRUE(Runs(2));
  Pass(5 * kSecond);
  EXPECT_TRUE(Runs(1));
}

TEST_F(TurnsTest, AutoChoosesTurnsOnlyWhereMovementCostsMore) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(20 * kSecond, 100);
  EXPECT_EQ(StandingOf(1), TurnStanding::kShares);
  EXPECT_EQ(ReasonOf(1), TurnReason::kCheap) << "both wait in a hundredth of the time";
  EXPECT_TRUE(turns_.ViewOf(kFirst).is_cheap);
  Pass(20 * kSecond, 600);
  EXPECT_TRUE(Runs(1) || Runs(2));
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kMoves);

  Of(2).parts[0].need_bytes = 2 * kGiB;
  Pass(kSecond);
  EXPECT_TRUE(turns_.IsOn(kFirst)) << "not for a moment's sake";
  Pass(3 * kSecond);
  EXPECT_EQ(StandingOf(1), TurnStanding::kShares);
}

TEST_F(TurnsTest, TheClockOfTheLossIsTheDevices) {
  clock_divisor_ = 25;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(100 * kSecond, 600);
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kMoves);
  EXPECT_GT(turns_.ViewOf(kFirst).lost_permille, 68);
  EXPECT_EQ(turns_.ViewOf(kFirst).turns_permille, 55);
}

TEST_F(TurnsTest, WhatPlansCostIsLossToo) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassPlanned(18, {.stall = 400});
  EXPECT_TRUE(turns_.IsOn(kFirst)) << "no call waits, but the plans take 4 tenths of the time";
}

// No reading says how idle the device is. Calls wait for memory while the device computes what the
// same job has called before.
TEST_F(TurnsTest, WhatCallsWaitIsNoLossBesideAPlan) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassPlanned(60, {.wait = 560, .stall = 50});
  EXPECT_FALSE(turns_.IsOn(kFirst));
}

// Regression: a window without an iteration's end counted as one in which nothing was recomputed.
TEST_F(TurnsTest, IterationsOfManySecondsCountWhole) {
  devices_[0].idle_permille = 5;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassIterations(12, 5, {.wait = 500, .repeat = 200});
  EXPECT_TRUE(turns_.IsOn(kFirst));
}

// Regression: in windows without an iteration's end what calls wait counted instead of the plan.
TEST_F(TurnsTest, WhatCallsWaitIsNoLossBesideAPlanOfLongIterations) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassIterations(2, 5, {.wait = 750, .stall = 50});
  PassIterations(4, 20, {.wait = 750, .stall = 50});
  EXPECT_FALSE(turns_.IsOn(kFirst));
}

TEST_F(TurnsTest, SharesOfJobsThatLoseNothingAreAChoiceToo) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassPlanned(5, {});
  EXPECT_FALSE(turns_.ViewOf(kFirst).is_cheap);
  PassPlanned(20, {});
  EXPECT_TRUE(turns_.ViewOf(kFirst).is_cheap);
  EXPECT_EQ(turns_.ViewOf(kFirst).lost_permille, 0);
}

// The driver does not tell how idle the device is.
TEST_F(TurnsTest, JobsThatWaitIndependentlySeldomWaitTogether) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(40 * kSecond, 200);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "a fifth of a fifth";
  Pass(40 * kSecond, 400);
  EXPECT_TRUE(turns_.IsOn(kFirst));
}

TEST_F(TurnsTest, WaitsCountOnlyAsFarAsTheDeviceIsIdle) {
  devices_[0].idle_permille = 40;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(20 * kSecond, 900);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "one computes while the other waits";
  EXPECT_EQ(turns_.ViewOf(kFirst).lost_permille, 40);
  devices_[0].idle_permille = 53;
  Pass(20 * kSecond, 900);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "turns would cost 55";

  devices_[0].idle_permille = 400;
  Pass(18 * kSecond, 500);
  EXPECT_TRUE(turns_.IsOn(kFirst));
}

TEST_F(TurnsTest, TheDeviceIsNotIdleForMemoryWhereOnlyOneWaits) {
  devices_[0].idle_permille = 400;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  for (int look = 0; look < 400; ++look) {
    Of(2).parts[0].loss = {};  // it never waits, but computes little
    Pass(50'000'000, 900);
  }
  EXPECT_FALSE(turns_.IsOn(kFirst));
}

TEST_F(TurnsTest, AnIdleDeviceIsNoLossWhereNobodyWaits) {
  devices_[0].idle_permille = 900;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(20 * kSecond, 20);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "the programs wait for something else";
}

TEST_F(TurnsTest, RecomputingIsLostOnABusyDeviceToo) {
  devices_[0].idle_permille = 0;
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  PassPlanned(18, {.wait = 100, .stall = 300, .repeat = 100});
  EXPECT_TRUE(turns_.IsOn(kFirst)) << "each repeats a tenth, which nothing hides";
}

// Figures of tests/bench/turns/turns.py: each needs 95 % of the device, whose turns cost 46 of
// 1000.
TEST_F(TurnsTest, TwoGpt2TakeTurnsBecauseTheyRecompute) {
  devices_[0] = {100 * kGiB, 950 * kGiB, 5};
  Job(1, 95, TurnsChoice::kAuto);
  Job(2, 95, TurnsChoice::kAuto);
  PassPlanned(18, {.wait = 570, .stall = 4, .repeat = 43}, Planned{540, 1, 38});
  EXPECT_TRUE(turns_.IsOn(kFirst));
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kMoves);
  EXPECT_EQ(turns_.ViewOf(kFirst).turns_permille, 45);
  const int64_t since_ns = turns_.ViewOf(kFirst).since_ns;
  PassPlanned(120, {});
  EXPECT_EQ(turns_.ViewOf(kFirst).since_ns, since_ns) << "in turns nothing is lost, so they go on";
}

// Figures of the same bench, whose device's clock is four times slower: each needs 60 %. Calls wait
// in most of the time, but the device computes. The means of readings, one each 2 s, still remember
// the time in which both learned, and single readings of a device that was idle.
TEST_F(TurnsTest, TwoResNet50ShareBecauseTheDeviceIsBusy) {
  clock_divisor_ = 4;
  Job(1, 60, TurnsChoice::kAuto);
  Job(2, 60, TurnsChoice::kAuto);
  for (const int64_t idle_permille :
       {233, 116, 58, 94, 92, 51, 25, 17, 8, 36, 19, 19, 9, 204, 102, 51, 25, 12, 3, 1, 0, 0, 0}) {
    devices_[0].idle_permille = idle_permille;
    PassPlanned(2, {.wait = 774, .stall = 1, .repeat = 4}, Planned{751, 13, 5});
    EXPECT_FALSE(turns_.IsOn(kFirst));
  }
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kCheap);
  EXPECT_TRUE(turns_.ViewOf(kFirst).is_cheap);
  EXPECT_LT(turns_.ViewOf(kFirst).lost_permille, 15);
  devices_[0].idle_permille.reset();
  PassPlanned(60, {.wait = 774, .stall = 1, .repeat = 4}, Planned{751, 13, 5});
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "their plans say the same where the driver does not tell";
}

TEST_F(TurnsTest, OneReadingOfAnIdleDeviceIsForgotten) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  devices_[0].idle_permille = 0;
  Pass(10 * kSecond, 900);
  for (const int64_t idle_permille : {500, 250, 125, 62, 31, 15}) {
    devices_[0].idle_permille = idle_permille;
    Pass(2 * kSecond + kSecond / 2, 900);  // on a busy machine
    EXPECT_FALSE(turns_.IsOn(kFirst));
  }
}

TEST_F(TurnsTest, LossThatComesAndGoesIsNoReasonForTurns) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  for (int i = 0; i < 20; ++i) {
    devices_[0].idle_permille = i % 2 == 0 ? 200 : 20;
    Pass(8 * kSecond, 900);
    EXPECT_FALSE(turns_.IsOn(kFirst));
    EXPECT_FALSE(turns_.ViewOf(kFirst).is_cheap);
  }
}

TEST_F(TurnsTest, LossOfJobsThatLearnCountsOnlyAfterAWhile) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto).parts[0].is_learning = true;
  Pass(20 * kSecond, 900);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "it may be fast with a plan";
  EXPECT_FALSE(turns_.ViewOf(kFirst).is_cheap) << "nobody knows yet";
  Pass(24 * kSecond, 900);
  EXPECT_TRUE(turns_.IsOn(kFirst)) << "it learns nothing";
}

TEST_F(TurnsTest, OneThatLearnsForEverDoesNotKeepOthersFromTurns) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Job(3, 1, TurnsChoice::kAuto).parts[0].is_learning = true;
  for (int second = 0; second < 650; ++second) {
    Pass(kSecond, 900);
    Of(3).parts[0].loss = {};  // it never waits
  }
  EXPECT_TRUE(turns_.IsOn(kFirst));
}

// Regression: half a second of waits counted as if the whole minute had been lost.
TEST_F(TurnsTest, LittleNewsInALongTimeIsNoLoss) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  Pass(kSecond / 2, 900);
  clock_divisor_ = 1'000'000;  // the device's clock stands nearly still
  Pass(65 * kSecond, 900);
  EXPECT_EQ(turns_.ViewOf(kFirst).lost_permille, 0);
}

TEST_F(TurnsTest, JobsWithoutNewsForLongLoseNothing) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 5, TurnsChoice::kAuto);
  Pass(5 * kSecond, 900);
  clock_divisor_ = 1'000'000'000;
  Pass(600 * kSecond, 0);

  Of(2).parts[0].need_bytes = 60 * kGiB;
  Pass(5 * kSecond, 0);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "those waits are long past";
}

// A swap of 0.6 s, in turns of 20 s.
TEST_F(TurnsTest, LongTurnsCostLess) {
  devices_[0].link_bytes_per_second = 300 * kGiB;
  turns_.SetRules({.quantum_ns = 20 * kSecond});
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto);
  devices_[0].idle_permille = 45;
  Pass(60 * kSecond, 100);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "less than a twentieth is not worth a change";
  devices_[0].idle_permille = 55;
  Pass(20 * kSecond, 100);
  EXPECT_TRUE(turns_.IsOn(kFirst)) << "turns cost 14 of 1000";
  EXPECT_EQ(turns_.ViewOf(kFirst).turns_permille, 14);
}

TEST_F(TurnsTest, JobsThatParkTakeTurnsAtOnce) {
  Job(1, 90, TurnsChoice::kAuto);
  Job(2, 90, TurnsChoice::kAuto).parts[0].parks = true;
  Pass(kSecond);
  EXPECT_TRUE(turns_.IsOn(kFirst));
  EXPECT_EQ(turns_.ViewOf(kFirst).reason, TurnReason::kParks);
}

TEST_F(TurnsTest, ForbiddenAndOlderJobsKeepTheirMemory) {
  Job(1, 90);
  Job(2, 90, TurnsChoice::kNever).parts[0].budgeted_bytes = 40 * kGiB;
  Job(3, 30).parts[0].may_take = false;
  Of(3).parts[0].budgeted_bytes = 30 * kGiB;
  Pass(5 * kSecond);
  EXPECT_FALSE(turns_.IsOn(kFirst));
  EXPECT_EQ(ReasonOf(1), TurnReason::kForbidden);

  Job(4, 20);
  Pass(5 * kSecond);
  EXPECT_TRUE(turns_.IsOn(kFirst));
  EXPECT_EQ(StandingOf(2), TurnStanding::kShares);
  EXPECT_EQ(StandingOf(3), TurnStanding::kShares);
  EXPECT_TRUE(Runs(1));
  EXPECT_LE(turns_.ViewOf(JobId{1}, kFirst).start_bytes, 30 * kGiB) << "that is all that is left";
}

TEST_F(TurnsTest, JobsThatFitBesideEachOtherRunTogether) {
  Job(1, 60);
  Job(2, 30);
  Job(3, 60);
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
  EXPECT_TRUE(Runs(2));
  EXPECT_TRUE(Waits(3));
}

TEST_F(TurnsTest, IdleJobGivesUpItsTurnAtOnceAndReturnsWhenItWakes) {
  Job(1, 90);
  Job(2, 90);
  Pass(kSecond);
  Of(1).active = false;
  Pass(kSecond / 10);
  EXPECT_TRUE(Waits(1));
  EXPECT_EQ(ReasonOf(1), TurnReason::kIdle);
  EXPECT_TRUE(Runs(2));
  Of(1).active = true;
  Pass(kSecond);
  EXPECT_EQ(ReasonOf(1), TurnReason::kAnothers);
}

TEST_F(TurnsTest, IdleJobKeepsItsTurnWhileNobodyWantsIt) {
  Job(1, 90);
  Job(2, 90);
  Pass(kSecond);
  Of(1).active = Of(2).active = false;
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
  Of(2).active = true;
  Pass(kSecond / 10);
  EXPECT_TRUE(Runs(2));
}

TEST_F(TurnsTest, StoppedJobLosesItsTurn) {
  Job(1, 90);
  Job(2, 90);
  Pass(kSecond);
  stopped_ = JobId{1};
  Pass(2 * kSecond);
  EXPECT_TRUE(Runs(1));
  Pass(2 * kSecond);
  EXPECT_TRUE(Runs(2));
  EXPECT_EQ(ReasonOf(1), TurnReason::kSilent);
}

TEST_F(TurnsTest, HungJobLosesItsTurnAndComesLast) {
  devices_[0].link_bytes_per_second = 5 * kGiB;  // a turn would last minutes
  Job(1, 90);
  Job(2, 90);
  Pass(kSecond);
  hung_ = JobId{1};
  Pass(58 * kSecond);
  EXPECT_TRUE(Runs(1));
  Pass(3 * kSecond);
  EXPECT_TRUE(Runs(2));
  EXPECT_EQ(ReasonOf(1), TurnReason::kStuck);
}

TEST_F(TurnsTest, DeadJobLosesItsTurn) {
  Job(1, 90);
  Job(2, 90);
  Job(3, 90);
  Pass(kSecond);
  jobs_.erase(jobs_.begin());
  Pass(kSecond / 10);
  EXPECT_TRUE(Runs(2));
}

TEST_F(TurnsTest, InteractiveJobPreemptsABatchJob) {
  Job(1, 90);
  Job(2, 90).active = false;
  Pass(30 * kSecond);
  Of(2).active = true;
  Pass(kSecond);
  EXPECT_TRUE(Runs(2)) << "at once: it had no turn yet, and the other had the time of its swap";
  EXPECT_EQ(ReasonOf(1), TurnReason::kPreempted);
  EXPECT_GT(turns_.ViewOf(JobId{1}, kFirst).level, turns_.ViewOf(JobId{2}, kFirst).level);
}

TEST_F(TurnsTest, PriorityStandsAboveLevelsAndDoesNotStarveOthers) {
  Job(1, 90).priority = 1;
  Job(2, 90);
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
  Pass(100 * kSecond);
  EXPECT_TRUE(Runs(1)) << "again and again";
  Pass(40 * kSecond);
  EXPECT_TRUE(Runs(2));
  EXPECT_EQ(ReasonOf(2), TurnReason::kStarved);
  Pass(15 * kSecond);
  EXPECT_TRUE(Runs(2)) << "nobody preempts it";
}

// Its memory cannot leave, so the others' turns would be spoilt again and again.
TEST_F(TurnsTest, OverdueJobComesLastUntilItStarves) {
  devices_[0].link_bytes_per_second = 300 * kGiB;  // a turn lasts 5.4 s
  Job(1, 90);
  Job(2, 90);
  Pass(6 * kSecond);
  EXPECT_TRUE(Runs(2));
  Of(1).is_overdue = true;
  Pass(20 * kSecond);
  EXPECT_TRUE(Runs(2)) << "again and again";
  Pass(14 * kSecond);
  EXPECT_TRUE(Runs(1));
  EXPECT_EQ(ReasonOf(1), TurnReason::kStarved) << "it may need a turn to free its memory";
}

TEST_F(TurnsTest, OverdueJobPreemptsNobody) {
  Job(1, 90);
  Job(2, 90).active = false;
  Pass(30 * kSecond);
  Of(2).active = Of(2).is_overdue = true;
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
}

// A job that registers again, with a new agent, has said nothing of its need yet.
TEST_F(TurnsTest, JobOfUnknownNeedDoesNotFit) {
  Job(1, 90);
  Job(2, 1).parts[0].is_need_known = false;
  Pass(5 * kSecond);
  EXPECT_FALSE(turns_.IsOn(kFirst)) << "it is not known that they do not fit";
  Of(2).parts[0] = Of(1).parts[0];
  Pass(kSecond);
  EXPECT_TRUE(Waits(2));
  Of(2).parts[0].need_bytes = kGiB;
  Of(2).parts[0].is_need_known = false;
  Pass(5 * kSecond);
  EXPECT_TRUE(turns_.IsOn(kFirst));
  EXPECT_TRUE(Waits(2)) << "nor that it fits beside the other";
}

TEST_F(TurnsTest, NeedsBeyondAllNumbersDoNotFit) {
  Job(1, 90);
  Job(2, 90);
  Job(3, 90);
  for (TurnJob& job : jobs_) job.parts[0].need_bytes = INT64_MAX / 2;
  Pass(kSecond);
  EXPECT_TRUE(turns_.IsOn(kFirst));
}

TEST_F(TurnsTest, JobThatReportsSeldomIsNotStopped) {
  Job(1, 90).silent_ns = 6 * kSecond;
  Job(2, 90);
  Pass(kSecond);
  stopped_ = JobId{1};
  Pass(5 * kSecond);
  EXPECT_TRUE(Runs(1));
  Pass(2 * kSecond);
  EXPECT_EQ(ReasonOf(1), TurnReason::kSilent);
}

TEST_F(TurnsTest, WeightLengthensATurn) {
  Job(1, 90).weight = 2;
  Job(2, 90);
  Pass(kSecond);
  EXPECT_EQ(turns_.ViewOf(JobId{1}, kFirst).until_ns - turns_.ViewOf(JobId{1}, kFirst).since_ns,
            (36 + 2 * 8 * 36) * kSecond / 10);
}

TEST_F(TurnsTest, JobOnTwoDevicesHasBothTurnsOrNone) {
  Job(1, 90);
  Job(2, 90);
  Of(2).parts[0].device = kSecondDevice;
  AddDevice(Job(3, 90), kSecondDevice);
  Pass(kSecond);
  Job(4, 90);
  Pass(kSecond);
  EXPECT_TRUE(Runs(1));
  EXPECT_EQ(turns_.ViewOf(JobId{2}, kSecondDevice).standing, TurnStanding::kRuns);
  EXPECT_TRUE(Waits(3));

  jobs_[0].active = false;
  Pass(kSecond);
  EXPECT_TRUE(Waits(3)) << "the second device is not free yet";
  EXPECT_EQ(ReasonOf(3), TurnReason::kOtherDevice);
  EXPECT_TRUE(Waits(4)) << "the first device is kept for the one before it";
  Pass(8 * kSecond);
  EXPECT_TRUE(Runs(3));
  EXPECT_EQ(turns_.ViewOf(JobId{3}, kSecondDevice).standing, TurnStanding::kRuns);
}

}  // namespace
}  // namespace spillway::agent
