#include "interposer/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace spillway::interposer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char* AllSet(const char* name) {
  if (std::strcmp(name, "SPILLWAY_BUDGET") == 0) return "1073741824";
  if (std::strcmp(name, "SPILLWAY_HOST_LIMIT") == 0) return "18446744073709551615";
  if (std::strcmp(name, "SPILLWAY_LEARN") == 0) return "wait";
  if (std::strcmp(name, "SPILLWAY_STRATEGY") == 0) return "vdnn-all";
  if (std::strcmp(name, "SPILLWAY_PLAN_STORE") == 0) return "/tmp/plans";
  if (std::strcmp(name, "SPILLWAY_REPORT") == 0) return "/tmp/report.json";
  if (std::strcmp(name, "SPILLWAY_PEAK_FILE") == 0) return "/tmp/peak";
  if (std::strcmp(name, "SPILLWAY_PROGRESS") == 0) return "1";
  if (std::strcmp(name, "SPILLWAY_SUMMARY") == 0) return "0";
  if (std::strcmp(name, "SPILLWAY_JOB_PID") == 0) return "4711";
  return nullptr;
}

TEST(ConfigTest, ReadsTheLaunchersSettings) {
  const Config config = ReadConfig(&AllSet);
  EXPECT_EQ(config.budget_bytes, 1073741824u);
  EXPECT_EQ(config.host_limit_bytes, 18446744073709551615u);
  EXPECT_EQ(config.learn, LearnChoice::kWait);
  EXPECT_EQ(config.strategy, "vdnn-all");
  EXPECT_EQ(config.plan_store_path, "/tmp/plans");
  EXPECT_EQ(config.report_path, "/tmp/report.json");
  EXPECT_EQ(config.peak_path, "/tmp/peak");
  EXPECT_TRUE(config.shows_progress);
  EXPECT_FALSE(config.shows_summary);
  EXPECT_EQ(config.job_pid, 4711);
  EXPECT_THAT(config.problems, IsEmpty());
}

TEST(ConfigTest, UnsetOrEmptyVariablesMeanDefaults) {
  for (const Environment environment :
       {Environment{[](const char*) -> const char* { return nullptr; }},
        Environment{[](const char*) { return ""; }}}) {
    const Config config = ReadConfig(environment);
    EXPECT_EQ(config.budget_bytes, std::nullopt);
    EXPECT_EQ(config.host_limit_bytes, std::nullopt);
    EXPECT_EQ(config.learn, LearnChoice::kAuto);
    EXPECT_EQ(config.plan_store_path, "");
    EXPECT_EQ(config.report_path, "");
    EXPECT_FALSE(config.shows_progress);
    EXPECT_EQ(config.job_pid, std::nullopt);
    EXPECT_THAT(config.problems, IsEmpty());
  }
}

template <const char* kText>
const char* Budget(const char* name) {
  return std::strcmp(name, "SPILLWAY_BUDGET") == 0 ? kText : nullptr;
}

template <const char* kText>
void ExpectBudgetIgnored() {
  const Config config = ReadConfig(&Budget<kText>);
  EXPECT_EQ(config.budget_bytes, std::nullopt) << kText;
  EXPECT_THAT(config.problems,
              ElementsAre(std::string("SPILLWAY_BUDGET=") + kText +
                          " is not a positive whole number in range; it is ignored"));
}

TEST(ConfigTest, InvalidBudgetIsReportedAndIgnored) {
  static constexpr char kUnit[] = "8GiB", kZero[] = "0", kNegative[] = "-1", kSpace[] = " 1",
                        kHex[] = "0x10", kTooLarge[] = "18446744073709551616";
  ExpectBudgetIgnored<kUnit>();
  ExpectBudgetIgnored<kZero>();
  ExpectBudgetIgnored<kNegative>();
  ExpectBudgetIgnored<kSpace>();
  ExpectBudgetIgnored<kHex>();
  ExpectBudgetIgnored<kTooLarge>();
}

TEST(ConfigTest, FlagIsZeroOrOne) {
  const Config config = ReadConfig([](const char* name) {
    return std::strcmp(name, "SPILLWAY_PROGRESS") == 0 ? "yes" : nullptr;
  });
  EXPECT_FALSE(config.shows_progress);
  EXPECT_THAT(config.problems,
              ElementsAre("SPILLWAY_PROGRESS=yes is neither 0 nor 1; it is ignored"));
}

TEST(ConfigTest, LearningDefaultsToAuto) {
  const Config config = ReadConfig([](const char* name) {
    return std::strcmp(name, "SPILLWAY_LEARN") == 0 ? "later" : nullptr;
  });
  EXPECT_EQ(config.learn, LearnChoice::kAuto);
  EXPECT_THAT(
      config.problems,
      ElementsAre("SPILLWAY_LEARN=later is none of auto, off, always and wait; it is ignored"));
}

// The driver enforces its limit whatever the budget, so an unreadable one is not silent.
TEST(ConfigTest, BesideABudgetOnlyTheDriversUnreadableLimitIsNamed) {
  const auto environment = [](const char* name) -> const char* {
    if (std::strcmp(name, "SPILLWAY_BUDGET") == 0) return "1073741824";
    if (std::strcmp(name, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") == 0) return "2Q";
    return std::strcmp(name, "CUDA_MEM_LIMIT") == 0 ? "2Q" : nullptr;
  };

  EXPECT_THAT(ReadConfig(environment).problems,
              ElementsAre(testing::StartsWith("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=2Q is not")));
}

}  // namespace
}  // namespace spillway::interposer
