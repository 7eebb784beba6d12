// Processes that die, are stopped, or wait elsewhere: the others continue, and the resources of the
// dead are free again.
#include <gtest/gtest.h>
#include <signal.h>

#include <iterator>
#include <list>

#include "base/prng.h"
#include "tests/unit/simulator_node/tenant_process.h"

namespace spillway::test {
namespace {

using Lines = std::vector<std::string>;

TEST(SharedMachineFailureTest, KilledProcessesMemoryIsFreeAgain) {
  const TestMachine machine(100);
  TenantProcess victim = machine.Start("", {"alloc:80", "wait"});
  ASSERT_EQ(victim.Line(), "ok");
  TenantProcess other = machine.Start("", {"alloc:80", "wait", "alloc:80"});
  ASSERT_EQ(other.Line(), "full");

  victim.Signal(SIGKILL);
  victim.Rest();
  other.Continue();

  EXPECT_EQ(other.Rest(), Lines{"ok"});
  EXPECT_EQ(machine.Statistics()["processes"][0]["state"], "killed");
  EXPECT_EQ(machine.Statistics()["devices"][0]["bytes_now"], 0);
}

TEST(SharedMachineFailureTest, KilledProcessesEngineShareGoesToOthers) {
  const TestMachine machine;
  TenantProcess victim = machine.Start("1/2", {"launch:1000", "time", "wait"});
  TenantProcess other = machine.Start("2/2", {"kernels:20", "time"});
  const long long launched_ns = TimeOf({victim.Line()});

  victim.Signal(SIGKILL);
  victim.Rest();

  // At half speed at most until then, at full speed afterwards.
  EXPECT_LT(TimeOf(other.Rest()), 20'500'000 + launched_ns);
}

// Twenty milliseconds of kernels take as long as alone.
void ExpectNoDelayOfTheSecond(const TestMachine& machine) {
  const Lines lines = machine.Start("2/2", {"kernels:20", "time"}).Rest();
  EXPECT_NEAR(static_cast<double>(TimeOf(lines)), 20e6, 0.5e6);
}

TEST(SharedMachineFailureTest, ProcessThatWaitsOutsideTheDriverDelaysOthersOnlyBriefly) {
  const TestMachine machine;
  TenantProcess elsewhere = machine.Start("1/2", {"time", "wait", "time"});
  elsewhere.Line();

  ExpectNoDelayOfTheSecond(machine);

  elsewhere.Continue();
  EXPECT_NEAR(static_cast<double>(TimeOf(elsewhere.Rest())), 0, 0.5e6);
}

// Regression: three models took turns. While two slept, a thread of Spillway looked at their work
// every 100 ms, and the third went on at that pace.
TEST(SharedMachineFailureTest, ProcessThatSleepsBetweenShortCallsDelaysNoOther) {
  const TestMachine machine;
  TenantProcess sleeper = machine.Start("1/2", {"time", "looks:60", "time"});
  sleeper.Line();

  ExpectNoDelayOfTheSecond(machine);

  EXPECT_FALSE(sleeper.HasLineWithin(0));
}

TEST(SharedMachineFailureTest, WorkOfAProcessThatWaitsOutsideTheDriverContinues) {
  const TestMachine machine;
  TenantProcess elsewhere = machine.Start("1/2", {"launch:5", "time", "wait", "kernels:1", "time"});
  TenantProcess other = machine.Start("2/2", {"kernels:20", "time"});
  elsewhere.Line();

  // Five milliseconds of each at half speed, fifteen alone.
  EXPECT_NEAR(static_cast<double>(TimeOf(other.Rest())), 25e6, 0.5e6);

  elsewhere.Continue();
  EXPECT_NEAR(static_cast<double>(TimeOf(elsewhere.Rest())), 26e6, 0.5e6);
}

TEST(SharedMachineFailureTest, StoppedProcessDelaysNoOtherAndContinuesLater) {
  const TestMachine machine(100);
  TenantProcess stopped =
      machine.Start("1/2", {"alloc:30", "kernels:1", "time", "compute:100", "kernels:1", "time"});
  TenantProcess other = machine.Start("2/2", {"wait", "kernels:20", "time"});
  other.Continue();
  ASSERT_EQ(stopped.Line(), "ok");
  stopped.Line();
  stopped.Signal(SIGSTOP);

  const Lines lines = other.Rest();
  EXPECT_LT(TimeOf(lines), 22'500'000);
  EXPECT_EQ(machine.Statistics()["processes"][0]["state"], "stopped");
  EXPECT_EQ(machine.Statistics()["devices"][0]["bytes_now"], 30 << 20);

  stopped.Signal(SIGCONT);
  EXPECT_NEAR(static_cast<double>(TimeOf(stopped.Rest())), static_cast<double>(TimeOf(lines)) + 1e6,
              0.1e6);
}

TEST(SharedMachineFailureTest, ProcessThatBecameAnotherProgramDelaysNoOther) {
  const TestMachine machine;
  TenantProcess former = machine.Start("1/2", {"kernels:1", "time", "exec"});
  TenantProcess other = machine.Start("2/2", {"kernels:20", "time"});

  EXPECT_LT(TimeOf(other.Rest()), 22'000'000);
}

// A tenant with a long life that reports after every step.
std::vector<std::string> LongLife() {
  std::vector<std::string> words = {"alloc:100"};
  for (int i = 0; i < 100; ++i)
    words.insert(words.end(), {"kernels:2", "time", "h2d:2", "time", "launch:3", "d2h:1", "time"});
  return words;
}

TEST(SharedMachineFailureTest, RandomKillsAndStopsDelayNoOtherAndLeaveNothingBehind) {
  constexpr std::uint64_t kSeed = 7;
  base::Prng random(kSeed);
  const TestMachine machine(1024);
  std::list<TenantProcess> tenants;
  int stops = 0, holding_stops = 0;
  const auto any = [&] {
    return std::next(tenants.begin(), static_cast<int>(random.Below(tenants.size())));
  };

  for (int action = 0; action < 150; ++action) {
    while (tenants.size() < 4) tenants.push_back(machine.Start("", LongLife()));
    const auto tenant = any();
    if (random.Below(3) == 0) {
      tenant->Signal(SIGKILL);
      tenants.erase(tenant);
    } else if (random.Below(4) == 0) {
      tenant->Signal(SIGSTOP);
      const auto other = any();
      // A process stopped inside the simulated driver, which is rare, blocks the others until it
      // continues.
      ++stops;
      const bool is_held = other != tenant && !other->HasLineWithin(2'000);
      holding_stops += is_held;
      if (is_held) tenant->Signal(SIGCONT);
      EXPECT_TRUE(other == tenant || !other->Line().empty()) << "action " << action;
      tenant->Signal(SIGCONT);
    } else {
      EXPECT_FALSE(tenant->Line().empty()) << "action " << action;
    }
  }
  tenants.clear();

  EXPECT_LE(holding_stops, stops / 2);
  EXPECT_LE(machine.Statistics()["devices"][0]["bytes_peak"], 1024 << 20);
  EXPECT_EQ(machine.Statistics()["devices"][0]["bytes_now"], 0);
  EXPECT_EQ(machine.Start("", {"alloc:1024"}).Rest(), Lines{"ok"});
}

}  // namespace
}  // namespace spillway::test
