#include "agent/device/limit_keeper.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

constexpr int64_t kGigabytes = int64_t{1} << 30;
const LimitPlace kPlace{"GPU-1", "/sys/fs/cgroup/a"}, kOther{"GPU-2", "/sys/fs/cgroup/a"};

class FakeDriver : public LimitDriver {
 public:
  nvml::Result Get(const LimitPlace& place, NativeLimits& limits) override {
    ++reads;
    if (gone.count(place) != 0) return nvml::kNotFound;
    limits = in_force[place];
    return read_result;
  }
  nvml::Result Set(const LimitPlace& place, const NativeLimits& limits) override {
    ++sets;
    recorded_before_set.push_back(record.count(place) == 0 ? std::set<int64_t>{}
                                                           : record.at(place));
    if (set_result != nvml::kSuccess) return set_result;
    NativeLimits rounded = limits;
    if (rounded.hard_bytes != INT64_MAX) rounded.hard_bytes -= rounded.hard_bytes % rounds_to;
    in_force[place] = rounded;
    return nvml::kSuccess;
  }

  std::map<LimitPlace, NativeLimits> in_force;
  std::set<LimitPlace> gone;
  nvml::Result read_result = nvml::kSuccess, set_result = nvml::kSuccess;
  int64_t rounds_to = 1;
  int reads = 0, sets = 0;
  OwnLimits record;
  std::vector<std::set<int64_t>> recorded_before_set;
};

class LimitKeeperTest : public testing::Test {
 protected:
  LimitKeeper Keeper(const OwnLimits& own = {}) {
    return LimitKeeper({&driver_,
                        [this](const OwnLimits& now) {
                          driver_.record = now;
                          return base::Ok();
                        }},
                       own);
  }
  LimitState StateOf(const LimitKeeper& keeper) { return keeper.Views().at(kPlace).state; }

  FakeDriver driver_;
};

TEST_F(LimitKeeperTest, SetsChangesAndClears) {
  LimitKeeper keeper = Keeper();

  keeper.Apply({{kPlace, 4 * kGigabytes}}, 0);
  EXPECT_EQ(driver_.in_force[kPlace], (NativeLimits{0, 4 * kGigabytes}));
  EXPECT_EQ(keeper.Views().at(kPlace), (LimitView{LimitState::kSet, 4 * kGigabytes}));
  keeper.Apply({{kPlace, 6 * kGigabytes}}, 1);
  EXPECT_EQ(driver_.in_force[kPlace].hard_bytes, 6 * kGigabytes);
  keeper.Apply({{kPlace, 2 * kGigabytes}}, 2);
  EXPECT_EQ(driver_.in_force[kPlace].hard_bytes, 2 * kGigabytes);

  keeper.Apply({}, 3);
  EXPECT_EQ(driver_.in_force[kPlace], NativeLimits{});
  EXPECT_EQ(StateOf(keeper), LimitState::kCleared) << "a count may still show it";
  keeper.Apply({}, 3 + LimitKeeper::kClearedNs);
  EXPECT_TRUE(keeper.Views().empty());
  EXPECT_TRUE(driver_.record.empty());
  EXPECT_TRUE(keeper.TakeNotes().empty());
}

TEST_F(LimitKeeperTest, WhatDoesNotChangeIsNotSetAgain) {
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, kGigabytes}}, 0);
  const int reads = driver_.reads;

  for (int second = 1; second < 10; ++second)
    keeper.Apply({{kPlace, kGigabytes}}, second * kSecond);

  EXPECT_EQ(driver_.sets, 1);
  EXPECT_EQ(driver_.reads, reads);
  keeper.Apply({{kPlace, kGigabytes}}, LimitKeeper::kCheckNs);
  EXPECT_EQ(driver_.reads, reads + 1) << "a check";
  EXPECT_EQ(driver_.sets, 1);
}

TEST_F(LimitKeeperTest, AnothersLimitStaysAndIsSaidOnce) {
  for (const NativeLimits others :
       {NativeLimits{0, kGigabytes}, NativeLimits{kGigabytes, INT64_MAX}}) {
    LimitKeeper keeper = Keeper();
    driver_.in_force[kPlace] = others;

    for (int i = 0; i < 3; ++i)
      keeper.Apply({{kPlace, (4 + i) * kGigabytes}}, i * LimitKeeper::kRetryNs);
    keeper.Apply({}, 9 * LimitKeeper::kRetryNs);

    EXPECT_EQ(driver_.in_force[kPlace], others);
    EXPECT_EQ(driver_.sets, 0);
    EXPECT_EQ(keeper.TakeNotes(),
              std::vector<std::string>{"somebody else set the limits of /sys/fs/cgroup/a on GPU-1: "
                                       "the agent leaves them as they are"});
  }
}

TEST_F(LimitKeeperTest, ALimitThatSomebodyChangedIsLeftFromThenOn) {
  for (const NativeLimits others : {NativeLimits{0, 5 * kGigabytes},
                                    NativeLimits{kGigabytes, 4 * kGigabytes}, NativeLimits{}}) {
    driver_ = {};
    LimitKeeper keeper = Keeper();
    keeper.Apply({{kPlace, 4 * kGigabytes}}, 0);
    driver_.in_force[kPlace] = others;

    keeper.Apply({{kPlace, 4 * kGigabytes}}, LimitKeeper::kCheckNs);
    EXPECT_EQ(StateOf(keeper), LimitState::kForeign);
    keeper.Apply({{kPlace, 8 * kGigabytes}}, 2 * LimitKeeper::kCheckNs);
    keeper.Apply({}, 3 * LimitKeeper::kCheckNs);

    EXPECT_EQ(driver_.in_force[kPlace], others);
    EXPECT_EQ(keeper.TakeNotes().size(), 1U);
    EXPECT_TRUE(driver_.record.empty()) << "the next agent must not clear it";
  }
}

TEST_F(LimitKeeperTest, AChangeBetweenTwoChecksIsSeenBeforeOursFollows) {
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, 4 * kGigabytes}}, 0);
  driver_.in_force[kPlace] = {0, 3 * kGigabytes};

  keeper.Apply({{kPlace, 8 * kGigabytes}}, 1);

  EXPECT_EQ(driver_.in_force[kPlace].hard_bytes, 3 * kGigabytes);
}

TEST_F(LimitKeeperTest, TheRecordHasALimitBeforeTheDriverDoes) {
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, 4 * kGigabytes}}, 0);
  keeper.Apply({{kPlace, 6 * kGigabytes}}, 1);

  EXPECT_EQ(driver_.recorded_before_set.at(0), (std::set<int64_t>{4 * kGigabytes, INT64_MAX}));
  EXPECT_EQ(driver_.recorded_before_set.at(1), (std::set<int64_t>{4 * kGigabytes, 6 * kGigabytes}));
  EXPECT_EQ(driver_.record.at(kPlace), std::set<int64_t>{6 * kGigabytes});
}

TEST_F(LimitKeeperTest, TheNextAgentClearsOrKeepsWhatTheFormerOneSet) {
  for (const bool had_set : {false, true}) {
    driver_ = {};
    if (had_set) driver_.in_force[kPlace] = driver_.in_force[kOther] = {0, 4 * kGigabytes};
    LimitKeeper keeper =
        Keeper({{kPlace, {4 * kGigabytes}}, {kOther, {3 * kGigabytes, 4 * kGigabytes}}});
    EXPECT_EQ(StateOf(keeper), LimitState::kPending) << "its own from the beginning";

    keeper.Apply({{kPlace, 5 * kGigabytes}}, 0);

    EXPECT_EQ(driver_.in_force[kPlace], (NativeLimits{0, 5 * kGigabytes}));
    EXPECT_EQ(driver_.in_force[kOther], NativeLimits{}) << "its job ended without an agent";
    EXPECT_TRUE(keeper.TakeNotes().empty());
  }
}

TEST_F(LimitKeeperTest, RefusalsAreSaidOnceAndNotTriedAgainAndAgain) {
  for (const nvml::Result refusal :
       {nvml::kNoPermission, nvml::kFunctionNotFound, nvml::kNotSupported, nvml::kUnknown}) {
    driver_ = {};
    driver_.set_result = refusal;
    LimitKeeper keeper = Keeper();

    for (int second = 0; second < 50; ++second)
      keeper.Apply({{kPlace, kGigabytes + second * kGigabytes}}, second * kSecond);

    EXPECT_EQ(driver_.sets, 1) << refusal;
    EXPECT_EQ(driver_.reads, 1) << refusal;
    EXPECT_EQ(StateOf(keeper), LimitState::kRefused);
    EXPECT_EQ(keeper.TakeNotes().size(), 1U);
    driver_.set_result = nvml::kSuccess;
    keeper.Apply({{kPlace, kGigabytes}, {kOther, kGigabytes}}, LimitKeeper::kRetryNs);
    EXPECT_EQ(driver_.in_force[kPlace].hard_bytes == kGigabytes, refusal == nvml::kUnknown);
    const bool other_device_too = refusal == nvml::kUnknown || refusal == nvml::kNotSupported;
    EXPECT_EQ(driver_.in_force[kOther].hard_bytes == kGigabytes, other_device_too);
    EXPECT_TRUE(keeper.TakeNotes().empty());
  }
}

TEST_F(LimitKeeperTest, ALimitThatCannotRiseIsTakenAway) {
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, kGigabytes}}, 0);
  driver_.read_result = nvml::kUnknown;

  keeper.Apply({{kPlace, 2 * kGigabytes}}, 1);

  EXPECT_EQ(driver_.in_force[kPlace], NativeLimits{});
}

TEST_F(LimitKeeperTest, OfAGroupThatIsGoneNothingIsSaid) {
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, kGigabytes}}, 0);
  driver_.gone.insert(kPlace);

  keeper.Apply({{kPlace, 2 * kGigabytes}}, 1);
  keeper.Apply({}, 2);

  EXPECT_TRUE(keeper.Views().empty());
  EXPECT_TRUE(keeper.TakeNotes().empty());
  EXPECT_TRUE(driver_.record.empty());
}

TEST_F(LimitKeeperTest, RoundingByTheDriverIsNoChangeBySomebodyElse) {
  driver_.rounds_to = 1 << 20;
  LimitKeeper keeper = Keeper();
  keeper.Apply({{kPlace, kGigabytes + 5}}, 0);

  keeper.Apply({{kPlace, kGigabytes + 5}}, LimitKeeper::kCheckNs);
  keeper.Apply({{kPlace, 2 * kGigabytes}}, LimitKeeper::kCheckNs + 1);

  EXPECT_EQ(driver_.in_force[kPlace].hard_bytes, 2 * kGigabytes);
  EXPECT_TRUE(keeper.TakeNotes().empty());
}

TEST_F(LimitKeeperTest, TheRecordIsReadAsItWasWritten) {
  const OwnLimits own = {{{"GPU-1", "/sys/fs/cgroup/a b"}, {5, 7}}, {kOther, {1}}};
  EXPECT_EQ(DecodeLimits(EncodeLimits(own)), own);
  EXPECT_EQ(DecodeLimits(EncodeLimits({})), OwnLimits{});
  for (const char* const wrong :
       {"", "spillway-limits 2\n", "spillway-limits 1\n5 GPU-1\n", "spillway-limits 1\n5 GPU-1 a\n",
        "spillway-limits 1\n-5 GPU-1 /a\n", "spillway-limits 1\nx GPU-1 /a\n"})
    EXPECT_FALSE(DecodeLimits(wrong)) << wrong;

  const std::string path = testing::TempDir() + "/own-limits." + std::to_string(getpid());
  EXPECT_EQ(*LoadLimits(path), OwnLimits{}) << "there is none";
  std::ofstream(path) << EncodeLimits(own);
  chmod(path.c_str(), 0600);
  EXPECT_EQ(*LoadLimits(path), own);
  chmod(path.c_str(), 0666);
  EXPECT_FALSE(LoadLimits(path)) << "anybody could have written it";
  unlink(path.c_str());
}

}  // namespace
}  // namespace spillway::agent
