#include "agent/node/table/unmanaged_memory.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class UnmanagedMemoryTest : public PartTest {
 protected:
  UnmanagedMemoryTest() {
    report_.devices = {{0, "GPU-0", ""}, {1, "GPU-1", ""}};
    arbiter_.SetDevice(kDevice, 10 * kGigabyte);
  }

  // Connected, and holds so much on the first device, within its budget.
  Session& Manage(pid_t pid, int64_t resident_bytes) {
    Session& session = NewJobSession("local-" + std::to_string(pid), pid);
    Register(session, 0, kDevice).usage.resident_bytes = resident_bytes;
    Terms terms;
    terms.memory.limit = 4 * kGigabyte;
    arbiter_.Join(ProcessOf(session, kDevice), terms, {resident_bytes}, 0);
    arbiter_.Decide(0);
    return session;
  }
  const DeviceReport& Look(std::vector<ProcessUse> uses) {
    AddUnmanaged({{"GPU-0"}, std::move(uses)}, table_, arbiter_, report_);
    return report_.devices[0];
  }

  Arbiter arbiter_{ArbiterRules{}};
  NodeReport report_;
};

TEST_F(UnmanagedMemoryTest, AForeignProcessIsUnmanagedAsAWhole) {
  const DeviceReport& device = Look({{7, "GPU-0", 3 * kGigabyte, "train"}});

  EXPECT_EQ(device.unmanaged_bytes, 3 * kGigabyte);
  ASSERT_EQ(device.unmanaged.size(), 1U);
  EXPECT_EQ(device.unmanaged[0].pid, 7);
  EXPECT_EQ(device.unmanaged[0].command, "train");
}

TEST_F(UnmanagedMemoryTest, AJobsProcessHasItsReportAndItsContext) {
  Manage(7, 4 * kGigabyte);

  EXPECT_EQ(Look({{7, "GPU-0", 4 * kGigabyte + kContextBytes, "train"}}).unmanaged_bytes, 0);
}

TEST_F(UnmanagedMemoryTest, AJobsProcessThatAlsoBypassesIsUnmanagedBeyondThat) {
  Manage(7, 4 * kGigabyte);

  EXPECT_EQ(Look({{7, "GPU-0", 4 * kGigabyte + kContextBytes + 5, "train"}}).unmanaged_bytes, 5);
}

TEST_F(UnmanagedMemoryTest, AReportAboveTheProcessesBudgetHidesNothing) {
  Session& session = Manage(7, 4 * kGigabyte);
  session.Find(0)->usage.resident_bytes = INT64_MAX;

  EXPECT_EQ(Look({{7, "GPU-0", 9 * kGigabyte + kContextBytes}}).unmanaged_bytes, 5 * kGigabyte);
}

TEST_F(UnmanagedMemoryTest, EachProcessOfAJobHasAContextOfItsOwn) {
  Manage(7, 0);
  Manage(8, 0);

  EXPECT_EQ(Look({{7, "GPU-0", kContextBytes}, {8, "GPU-0", kContextBytes}}).unmanaged_bytes, 0);
}

TEST_F(UnmanagedMemoryTest, ADeviceThatAProcessHasNotRegisteredIsUnmanaged) {
  Manage(7, 4 * kGigabyte);
  AddUnmanaged({{"GPU-0", "GPU-1"}, {{7, "GPU-1", kGigabyte}}}, table_, arbiter_, report_);

  EXPECT_EQ(report_.devices[0].unmanaged_bytes, 0);
  EXPECT_EQ(report_.devices[1].unmanaged_bytes, kGigabyte);
}

TEST_F(UnmanagedMemoryTest, ADisconnectedProcessStaysManaged) {
  Manage(7, 4 * kGigabyte);
  table_.sessions().begin()->second.state = SessionState::kDetached;

  EXPECT_EQ(Look({{7, "GPU-0", 4 * kGigabyte}}).unmanaged_bytes, 0);
}

TEST_F(UnmanagedMemoryTest, NothingIsSaidOfADeviceWithoutACount) {
  Look({{7, "GPU-1", kGigabyte}});

  EXPECT_EQ(report_.devices[0].unmanaged_bytes, 0);
  EXPECT_EQ(report_.devices[1].unmanaged_bytes, std::nullopt);
}

TEST_F(UnmanagedMemoryTest, TheLargestAreNamedAndAllAreCounted) {
  std::vector<ProcessUse> uses;
  for (pid_t pid = 1; pid <= 20; ++pid) uses.push_back({pid, "GPU-0", pid});
  const DeviceReport& device = Look(std::move(uses));

  EXPECT_EQ(device.unmanaged_bytes, 210);
  ASSERT_EQ(device.unmanaged.size(), kMostUnmanagedShown);
  EXPECT_EQ(device.unmanaged.front().pid, 20);
}

// The driver's count may be anything.
TEST_F(UnmanagedMemoryTest, HugeCountsSaturate) {
  EXPECT_EQ(Look({{7, "GPU-0", INT64_MAX}, {8, "GPU-0", INT64_MAX}}).unmanaged_bytes, INT64_MAX);
}

}  // namespace
}  // namespace spillway::agent
