// Several processes on one simulated machine: what they share, and that runs are deterministic.
#include <gtest/gtest.h>

#include "tests/unit/simulator_node/tenant_process.h"

namespace spillway::test {
namespace {

using Lines = std::vector<std::string>;
using Words = std::vector<std::string>;

// Runs the tenants together from the start; returns what each printed.
std::vector<Lines> RunTogether(const TestMachine& machine, const std::vector<Words>& tenants) {
  std::vector<TenantProcess> started;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const std::string slot = std::to_string(i + 1) + "/" + std::to_string(tenants.size());
    started.push_back(machine.Start(slot, tenants[i]));
  }
  std::vector<Lines> printed;
  for (TenantProcess& tenant : started) printed.push_back(tenant.Rest());
  return printed;
}

TEST(SharedMachineTest, SingleTenantTakesTheSameTimeAsWithoutAMachine) {
  const Words words = {"kernels:5", "h2d:8", "launch:3", "d2h:16", "alloc:4", "kernels:2", "time"};

  const TestMachine machine;

  EXPECT_EQ(machine.Start("", words).Rest(), RunAlone(words));
}

TEST(SharedMachineTest, TwoEqualTenantsComputeTwiceAsLong) {
  const Words words = {"kernels:50", "time"};
  const long long alone_ns = TimeOf(RunAlone(words));

  const TestMachine machine;
  const auto printed = RunTogether(machine, {words, words});

  for (const Lines& lines : printed) {
    EXPECT_NEAR(static_cast<double>(TimeOf(lines)) / static_cast<double>(alone_ns), 2, 0.02);
  }
}

TEST(SharedMachineTest, TenantHasTheEngineForItselfWhenTheOtherIsDone) {
  const TestMachine machine;

  const auto printed = RunTogether(machine, {{"kernels:10", "time"}, {"kernels:30", "time"}});

  // Ten milliseconds each at half speed, then twenty alone.
  EXPECT_NEAR(static_cast<double>(TimeOf(printed[0])), 20e6, 0.5e6);
  EXPECT_NEAR(static_cast<double>(TimeOf(printed[1])), 40e6, 0.5e6);
}

TEST(SharedMachineTest, CopiesInOneDirectionShareTheLink) {
  const Words words = {"h2d:1", "time", "h2d:64", "h2d:64", "h2d:64", "h2d:64", "time"};
  const long long alone_ns = ElapsedIn(RunAlone(words));

  const TestMachine machine;
  const auto printed = RunTogether(machine, {words, words});

  for (const Lines& lines : printed) {
    EXPECT_NEAR(static_cast<double>(ElapsedIn(lines)) / static_cast<double>(alone_ns), 2, 0.02);
  }
}

TEST(SharedMachineTest, CopiesAndKernelsOfTwoTenantsOverlap) {
  const Words copies = {"h2d:64", "h2d:64", "time"};
  const Words kernels = {"kernels:5", "time"};

  const TestMachine machine;
  const auto printed = RunTogether(machine, {copies, kernels});

  EXPECT_EQ(TimeOf(printed[0]), TimeOf(RunAlone(copies)));
  EXPECT_EQ(TimeOf(printed[1]), TimeOf(RunAlone(kernels)));
}

TEST(SharedMachineTest, MemoryIsSharedAndFreeMemoryIsTheRest) {
  const TestMachine machine(100);
  TenantProcess first = machine.Start("1/2", {"alloc:60", "wait", "free", "free_bytes", "wait"});
  TenantProcess second = machine.Start("2/2", {"kernels:1", "wait", "free_bytes", "alloc:60",
                                               "alloc:40", "wait", "free_bytes", "alloc:60"});

  EXPECT_EQ(first.Line(), "ok");
  second.Continue();
  EXPECT_EQ(second.Line(), "free 40");
  EXPECT_EQ(second.Line(), "full");
  EXPECT_EQ(second.Line(), "ok");

  first.Continue();
  EXPECT_EQ(first.Line(), "free 60");
  second.Continue();
  EXPECT_EQ(second.Rest(), (Lines{"free 60", "ok"}));
}

TEST(SharedMachineTest, StatisticsShowWhatEachProcessHeldAndDid) {
  const TestMachine machine(100);
  {
    TenantProcess first =
        machine.Start("1/2", {"alloc:30", "free", "alloc:10", "kernels:3", "wait"});
    TenantProcess second = machine.Start("2/2", {"alloc:20", "h2d:8"});
    first.Line();
    first.Line();
    second.Rest();
    const nlohmann::json present = machine.Statistics();
    EXPECT_EQ(present["processes"][0]["state"], "present");
    EXPECT_EQ(present["processes"][0]["pid"], first.pid());
    EXPECT_EQ(present["processes"][0]["device_bytes_now"][0], 10 << 20);
    EXPECT_EQ(present["devices"][0]["bytes_now"], 10 << 20);
    first.Continue();
    first.Rest();
  }

  const nlohmann::json statistics = machine.Statistics();

  EXPECT_EQ(statistics["device_bytes_capacity"], 100 << 20);
  EXPECT_EQ(statistics["devices"][0]["bytes_now"], 0);
  EXPECT_EQ(statistics["processes"][0]["state"], "ended");
  EXPECT_EQ(statistics["processes"][0]["device_bytes_peak"][0], 30 << 20);
  EXPECT_EQ(statistics["processes"][0]["kernels"], 3);
  EXPECT_NEAR(statistics["processes"][0]["compute_ns"].get<double>(), 3e6, 1e5);
  EXPECT_EQ(statistics["processes"][1]["device_bytes_peak"][0], (20 + 64) << 20);
  EXPECT_EQ(statistics["processes"][1]["h2d_bytes"], 8 << 20);
}

TEST(SharedMachineTest, EqualRunsAreEqualToTheNanosecond) {
  const std::vector<Words> tenants = {
      {"h2d:8", "kernels:7", "alloc:300", "compute:3", "launch:5", "d2h:32", "free", "kernels:2",
       "time"},
      {"kernels:3", "d2h:8", "alloc:500", "compute:7", "h2d:16", "time", "launch:9", "free_bytes",
       "kernels:1", "time"},
      {"alloc:200", "compute:1", "h2d:64", "kernels:4", "free", "alloc:700", "launch:2", "d2h:1",
       "time"},
      {"launch:4", "h2d:3", "compute:5", "alloc:100", "d2h:5", "free_bytes", "kernels:6", "time"}};
  const TestMachine first;
  const auto expected = RunTogether(first, tenants);

  for (int run = 0; run < 5; ++run) {
    const TestMachine again;
    EXPECT_EQ(RunTogether(again, tenants), expected);
  }
}

TEST(SharedMachineTest, LateTenantBeginsAtTheMachinesPresent) {
  const TestMachine machine;
  machine.Start("", {"kernels:10"}).Rest();

  const Lines lines = machine.Start("", {"time", "kernels:1", "time"}).Rest();

  EXPECT_GE(TimeOf({lines[0]}), 10'000'000);
  EXPECT_LT(TimeOf({lines[1]}), 12'000'000);
}

TEST(SharedMachineTest, ProcessWithOtherMachineSettingsIsRefused) {
  const TestMachine machine(512);
  machine.Start("", {"kernels:1"}).Rest();

  EXPECT_EQ(machine.StartWithCapacity(1024, {"time"}).Rest(), Lines{"failed"});
}

}  // namespace
}  // namespace spillway::test
