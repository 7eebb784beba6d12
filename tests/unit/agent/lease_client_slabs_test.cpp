// Slabs that pass between the agent and a process.
#include <fcntl.h>

#include <algorithm>

#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

class SlabSubject : public HoldingSubject {
 public:
  int64_t MissingSlabBytes(uint32_t) override { return missing_bytes; }
  void AddSlabs(const protocol::Slabs& slabs, std::vector<base::UniqueFd>) override {
    held.insert(held.end(), slabs.slabs.names.begin(),
                slabs.slabs.names.begin() + slabs.slabs.count);
  }
  std::vector<protocol::SlabName> HeldSlabs() override {
    const std::vector<protocol::SlabName> seen = held;
    if (returns_while_it_reports) Return();
    return seen;
  }
  std::vector<protocol::SlabName> TakeReturnedSlabs() override {
    const std::vector<protocol::SlabName> taken = std::exchange(returned, {});
    if (returns_while_it_reports) Return();
    return taken;
  }
  void Return() {
    returned.insert(returned.end(), held.begin(), held.end());
    held.clear();
  }

  int64_t missing_bytes = 0;
  bool returns_while_it_reports = false;
  std::vector<protocol::SlabName> held, returned;
};

class LeaseClientSlabsTest : public ServedLeaseClient<SlabSubject> {
 protected:
  void LendSlabs(std::vector<uint64_t> names, size_t files) {
    protocol::Slabs slabs;
    slabs.slab_bytes = 64;
    for (const uint64_t name : names)
      slabs.slabs.names[slabs.slabs.count++] = protocol::SlabName{name};
    const base::UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    subject.agent->Send(slabs, std::vector<int>(files, file.get()));
  }
  static std::vector<protocol::SlabName> NamesIn(const protocol::SlabNames& slabs) {
    return {slabs.names.begin(), slabs.names.begin() + slabs.count};
  }
  void Reconnect(int64_t now_ns) {
    subject.agent.reset();
    client.Step(now_ns);
    client.Step(now_ns + kSecond);
    Greet();
    client.Step(now_ns + kSecond + 1);
  }
};

// Regression: a program without free descriptors dropped such slabs. The agent counted them as the
// program's until it ended.
TEST_F(LeaseClientSlabsTest, SlabsWithoutTheirFilesGoBackAndAreAskedForLater) {
  Grant(1, 100, 40);
  subject.missing_bytes = 128;
  client.Step(3);

  LendSlabs({5, 6}, 1);
  client.Step(4);

  const auto returned = Hear<protocol::ReturnSlabs>();
  ASSERT_TRUE(returned);
  EXPECT_EQ(NamesIn(returned->slabs).size(), 2u);
  EXPECT_TRUE(subject.held.empty());
  client.Step(4 + 2 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::AskSlabs>()) << "the next files would be lost, too";
  client.Step(4 + 11 * kSecond);
  EXPECT_TRUE(Hear<protocol::AskSlabs>());
}

// Regression: such a slab was reported neither as held nor as returned, but returned later. By then
// the agent could have lent it again: it scrubbed a slab in use.
TEST_F(LeaseClientSlabsTest, SlabReturnedWhileASessionBeginsIsNeverReturnedTwice) {
  Grant(1, 100, 40);
  LendSlabs({5}, 1);
  client.Step(3);
  ASSERT_EQ(subject.held.size(), 1u);

  subject.returns_while_it_reports = true;
  Reconnect(kSecond);

  bool is_held = false;
  size_t times_returned = 0;
  for (protocol::Received said;
       (said = subject.agent->Receive()).what == protocol::Received::What::kMessage;) {
    if (const auto* held = std::get_if<protocol::HeldSlabs>(&said.message))
      is_held = held->slabs.count > 0;
    if (const auto* returned = std::get_if<protocol::ReturnSlabs>(&said.message))
      times_returned += returned->slabs.count;
  }
  EXPECT_EQ(times_returned, is_held ? 1u : 0u);
}

}  // namespace
}  // namespace spillway::interposer
