#include "cli/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/failure.h"

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string RefusalOf(const std::vector<std::string>& arguments) {
  try {
    ParseRunOptions(arguments);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), 2);
    return failure.text();
  }
  return "accepted";
}

TEST(RunOptionsTest, AcceptsEveryOption) {
  const RunOptions options = ParseRunOptions(
      {"run", "--budget", "8GiB", "--host=64GiB", "--simulate=a100", "--report", "r.json",
       "--park=host", "--quiet", "--no-framework-env", "--", "train", "--budget", "x"});
  EXPECT_EQ(options.budget->bytes, 8589934592U);
  EXPECT_EQ(options.host->bytes, 68719476736U);
  EXPECT_EQ(options.simulate, "a100");
  EXPECT_EQ(options.report, "r.json");
  EXPECT_EQ(ParseRunOptions({"run", "--trace", "t.json", "--", "x"}).trace, "t.json");
  EXPECT_EQ(options.park, "host");
  EXPECT_TRUE(options.quiet);
  EXPECT_FALSE(options.framework_env);
  EXPECT_FALSE(options.off);
  EXPECT_THAT(options.command, ElementsAre("train", "--budget", "x"));
}

TEST(RunOptionsTest, OptionsEndAtTheCommandEvenWithoutDashes) {
  const RunOptions options = ParseRunOptions({"run", "-q", "train", "-b", "--off"});
  EXPECT_THAT(options.command, ElementsAre("train", "-b", "--off"));
  EXPECT_FALSE(options.budget.has_value());
}

TEST(RunOptionsTest, ShortOptionsAcceptJoinedAndSeparateValues) {
  EXPECT_EQ(ParseRunOptions({"run", "-b1G", "x"}).budget->bytes, 1073741824U);
  EXPECT_EQ(ParseRunOptions({"run", "-b", "1G", "x"}).budget->bytes, 1073741824U);
}

TEST(RunOptionsTest, SimulateAloneMeansTheDefaultProfile) {
  const RunOptions options = ParseRunOptions({"run", "--simulate", "a100"});
  EXPECT_EQ(options.simulate, "h200");
  EXPECT_THAT(options.command, ElementsAre("a100"));
}

TEST(RunOptionsTest, HelpNeedsNoCommand) { EXPECT_TRUE(ParseRunOptions({"run", "--help"}).help); }

// Regression: the agent refused the job's messages, and the job ran without it.
TEST(RunOptionsTest, SizeBeyondTheAgentsProtocolIsRefused) {
  EXPECT_THAT(RefusalOf({"run", "--host", "65537TiB", "x"}), HasSubstr("at most 65536TiB"));
  EXPECT_THAT(RefusalOf({"run", "--budget", "65537TiB", "x"}), HasSubstr("at most 65536TiB"));
  EXPECT_EQ(RefusalOf({"run", "--host", "65536TiB", "x"}), "accepted");
}

TEST(RunOptionsTest, InvalidSizeExplainsTheFormat) {
  EXPECT_THAT(RefusalOf({"run", "--budget", "lots", "x"}), HasSubstr("8GiB"));
  EXPECT_THAT(RefusalOf({"run", "--budget", "", "x"}), HasSubstr("no size"));
  EXPECT_THAT(RefusalOf({"run", "--budget", "0", "x"}), HasSubstr("cannot be zero"));
  EXPECT_THAT(RefusalOf({"run", "--budget", "0%peak", "x"}), HasSubstr("cannot be zero"));
  EXPECT_THAT(RefusalOf({"run", "--host", "25%", "x"}), HasSubstr("in bytes"));
}

TEST(RunOptionsTest, ParkingIsAutoHostOrOff) {
  EXPECT_EQ(ParseRunOptions({"run", "x"}).park, "");
  EXPECT_EQ(ParseRunOptions({"run", "--park", "off", "x"}).park, "off");
  EXPECT_THAT(RefusalOf({"run", "--park", "yes", "x"}), HasSubstr("--park auto"));
}

TEST(RunOptionsTest, StrategiesAreThoseOfTheScheduler) {
  EXPECT_EQ(ParseRunOptions({"run", "x"}).strategy, "");
  EXPECT_EQ(ParseRunOptions({"run", "--strategy", "vdnn-all", "x"}).strategy, "vdnn-all");
  EXPECT_THAT(RefusalOf({"run", "--strategy", "list", "x"}), HasSubstr("vdnn-all"));
}

TEST(RunOptionsTest, LearningOffMeansNoPlanning) {
  EXPECT_TRUE(ParseRunOptions({"run", "x"}).learn);
  EXPECT_FALSE(ParseRunOptions({"run", "--no-learn", "x"}).learn);
  EXPECT_EQ(ParseRunOptions({"run", "--plan-store", "plans", "x"}).plan_store, "plans");
  EXPECT_THAT(RefusalOf({"run", "--no-learn", "--plan-store", "plans", "x"}),
              HasSubstr("not planned"));
  EXPECT_THAT(RefusalOf({"run", "--plan-store=", "x"}), HasSubstr("needs a folder"));
  EXPECT_THAT(RefusalOf({"run", "--off", "--no-learn", "x"}), HasSubstr("cannot be combined"));
}

TEST(RunOptionsTest, ForgottenCommandIsNamed) {
  EXPECT_THAT(RefusalOf({"run"}), HasSubstr("no command to run"));
  EXPECT_THAT(RefusalOf({"run", "--budget", "1G", "--"}), HasSubstr("no command to run"));
}

TEST(RunOptionsTest, UnknownAndIncompleteOptionsAreNamed) {
  EXPECT_THAT(RefusalOf({"run", "--budgte", "1G", "x"}), HasSubstr("--budgte"));
  EXPECT_THAT(RefusalOf({"run", "-q", "-z", "x"}), HasSubstr("-z"));
  EXPECT_THAT(RefusalOf({"run", "--budget"}), HasSubstr("--budget needs a value"));
  EXPECT_THAT(RefusalOf({"run", "--report=", "x"}), HasSubstr("file name"));
  EXPECT_THAT(RefusalOf({"run", "--trace=", "x"}), HasSubstr("--trace needs a file name"));
  EXPECT_THAT(RefusalOf({"run", "--off", "--trace", "t.json", "--", "x"}), HasSubstr("--trace"));
}

TEST(RunOptionsTest, AgentIsUsedOnlyWhenRequested) {
  EXPECT_EQ(ParseRunOptions({"run", "x"}).agent, "");
  EXPECT_EQ(ParseRunOptions({"run", "--agent=a.sock", "x"}).agent, "a.sock");
  EXPECT_THAT(ParseRunOptions({"run", "--agent", "x"}).agent, HasSubstr("/"));
  EXPECT_THAT(RefusalOf({"run", "--off", "--agent", "x"}), HasSubstr("--off cannot be combined"));
}

TEST(RunOptionsTest, OffExcludesABudget) {
  EXPECT_THAT(RefusalOf({"run", "--off", "--budget", "1G", "x"}),
              HasSubstr("--off cannot be combined"));
  EXPECT_EQ(RefusalOf({"run", "--off", "--simulate", "x"}), "accepted");
}

TEST(RunOptionsTest, CallSitesDefaultToOneInSixteen) {
  EXPECT_EQ(ParseRunOptions({"run", "--report", "r", "--call-sites", "--", "job"}).call_sites,
            "16");
  EXPECT_EQ(ParseRunOptions({"run", "--report", "r", "--call-sites=3", "--", "job"}).call_sites,
            "3");
}

TEST(RunOptionsTest, CallSitesNeedAReportAndAWholeNumber) {
  EXPECT_THROW(ParseRunOptions({"run", "--call-sites", "--", "job"}), Failure);
  EXPECT_THROW(ParseRunOptions({"run", "--report", "r", "--call-sites=0", "--", "job"}), Failure);
  EXPECT_THROW(ParseRunOptions({"run", "--report", "r", "--call-sites=often", "--", "job"}),
               Failure);
}

}  // namespace
}  // namespace spillway::cli
