#include "cli/launch_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "cli/failure.h"
#include "tests/support/scratch_folder.h"

namespace spillway::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kGiB = 1ULL << 30;

std::string RefusalOf(const std::function<void()>& check) {
  try {
    check();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), 125);
    return failure.text();
  }
  return "accepted";
}

std::uint64_t Decide(const std::string& size, std::uint64_t peak_bytes, std::string& warning) {
  return DecideBudgetBytes({.size = *base::ParseSize(size),
                            .device_bytes = 8 * kGiB,
                            .peak_bytes = peak_bytes,
                            .measure_command = "spillway run -- train"},
                           warning);
}

TEST(BudgetDecisionTest, PercentagesAreOfTheDeviceOrThePeak) {
  std::string warning;
  EXPECT_EQ(Decide("2GiB", 0, warning), 2 * kGiB);
  EXPECT_EQ(Decide("25%", 0, warning), 2 * kGiB);
  EXPECT_EQ(Decide("25%peak", 4 * kGiB, warning), kGiB);
  EXPECT_EQ(warning, "");
}

TEST(BudgetDecisionTest, BudgetAboveTheDeviceIsLoweredWithAWarning) {
  std::string warning;
  EXPECT_EQ(Decide("9GiB", 0, warning), 8 * kGiB);
  EXPECT_THAT(warning, AllOf(HasSubstr("9GiB"), HasSubstr("8.0 GiB")));
}

TEST(BudgetDecisionTest, UnknownPeakNamesTheCommandThatMeasuresIt) {
  std::string warning;
  EXPECT_THAT(RefusalOf([&] { Decide("25%peak", 0, warning); }),
              AllOf(HasSubstr("peak is not known"), HasSubstr("spillway run -- train")));
}

TEST(BudgetDecisionTest, BudgetBelowTheMinimumIsRefusedWithBothFigures) {
  std::string warning;
  EXPECT_EQ(Decide("4MiB", 0, warning), 4U << 20);
  EXPECT_THAT(RefusalOf([&] { Decide("3MiB", 0, warning); }),
              AllOf(HasSubstr("3145728"), HasSubstr("4.0 MiB")));
  EXPECT_THAT(RefusalOf([&] { Decide("1%peak", kGiB / 4, warning); }), HasSubstr("2684354"));
}

class NestingTest : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("LD_PRELOAD");
    unsetenv("SPILLWAY_JOB_PID");
  }
};

TEST_F(NestingTest, OtherPreloadLibrariesAreNoNesting) {
  setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so:/opt/notlibspillway.so", 1);
  EXPECT_EQ(RefusalOf(CheckNotNested), "accepted");
}

TEST_F(NestingTest, JobInsideAJobIsRefusedWithTheOuterPid) {
  setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so /opt/lib/libspillway.so", 1);
  setenv("SPILLWAY_JOB_PID", "4711", 1);
  EXPECT_THAT(RefusalOf(CheckNotNested), HasSubstr("4711"));
}

TEST_F(NestingTest, PreloadSetByHandIsRefused) {
  setenv("LD_PRELOAD", "libspillway.so", 1);
  EXPECT_THAT(RefusalOf(CheckNotNested), HasSubstr("LD_PRELOAD already names"));
}

TEST(PreloadLibraryTest, MissingOrUnusablePathsAreRefused) {
  test::ScratchFolder folder;
  Installation installation;
  installation.preload_library = folder.path() + "/lib/libspillway.so";
  EXPECT_THAT(RefusalOf([&] { CheckPreloadLibrary(installation); }), HasSubstr("No such file"));
  installation.preload_library = folder.Write("with space/libspillway.so", "x");
  EXPECT_THAT(RefusalOf([&] { CheckPreloadLibrary(installation); }),
              HasSubstr("separates its entries"));
  installation.preload_library = folder.Write("lib/libspillway.so", "x");
  EXPECT_EQ(RefusalOf([&] { CheckPreloadLibrary(installation); }), "accepted");
}

TEST(SimulatorTest, UnknownProfileErrorListsExistingProfiles) {
  test::ScratchFolder folder;
  folder.Write("libcuda.so.1", "x");
  folder.Write("profiles/h200.profile", "x");
  const std::string own = folder.Write("profiles/a100.profile", "x");
  Installation installation;
  installation.simulator_folder = folder.path();
  EXPECT_EQ(RefusalOf([&] { CheckSimulator(installation, "h200"); }), "accepted");
  EXPECT_EQ(RefusalOf([&] { CheckSimulator(installation, own); }), "accepted");
  EXPECT_THAT(RefusalOf([&] { CheckSimulator(installation, "h20"); }), HasSubstr("a100 h200"));
  EXPECT_THAT(RefusalOf([&] { CheckSimulator(installation, "./mine"); }), HasSubstr("./mine"));
}

TEST(SimulatorTest, MissingSimulatorSaysHowToBuildIt) {
  test::ScratchFolder folder;
  Installation installation;
  installation.simulator_folder = folder.path();
  EXPECT_THAT(RefusalOf([&] { CheckSimulator(installation, "h200"); }),
              HasSubstr("SPILLWAY_SIMULATOR=ON"));
}

TEST(AcceleratorTest, EveryFailureNamesARemedy) {
  AcceleratorFacts facts;
  facts.outcome = ProbeOutcome::kNoDriver;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }),
              AllOf(HasSubstr("no CUDA driver"), HasSubstr("--simulate")));
  facts.outcome = ProbeOutcome::kDriverFailed;
  facts.driver_result = 34;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }), HasSubstr("stub"));
  facts.driver_result = 100;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }), HasSubstr("CUDA_VISIBLE_DEVICES"));
  facts.driver_result = 12345;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }), HasSubstr("12345"));
  facts.outcome = ProbeOutcome::kReady;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }), HasSubstr("virtual memory management"));
  facts.has_virtual_memory = true;
  facts.driver_version = 12030;
  EXPECT_THAT(RefusalOf([&] { CheckAccelerator(facts); }),
              AllOf(HasSubstr("12.3"), HasSubstr("12.4")));
  facts.driver_version = 12040;
  EXPECT_EQ(RefusalOf([&] { CheckAccelerator(facts); }), "accepted");
}

TEST(ReportTest, OldReportsAreRemovedAndBadPlacesRefused) {
  test::ScratchFolder folder;
  const std::string old = folder.Write("report.json", "{}");
  EXPECT_EQ(ClearFile(old, "report"), old);
  EXPECT_NE(access(old.c_str(), F_OK), 0);
  EXPECT_THAT(RefusalOf([&] { ClearFile("/dev/null", "report"); }), HasSubstr("a device"));
  EXPECT_THAT(RefusalOf([&] { ClearFile(folder.path(), "report"); }), HasSubstr("a folder"));
  EXPECT_THAT(RefusalOf([&] { ClearFile(folder.path() + "/none/report.json", "report"); }),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace spillway::cli
