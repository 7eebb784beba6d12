#include <sys/mman.h>

#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

class SpillingSubject : public HoldingSubject {
 public:
  DeviceUse Read(uint32_t device) override {
    DeviceUse use = HoldingSubject::Read(device);
    use.spill = spill;
    return use;
  }
  void TakeSpillFile(const protocol::SpillFile& file, base::UniqueFd descriptor) override {
    if (descriptor) files.push_back(file);
  }
  void ReturnSpilled(uint32_t device) override { called_back.push_back(device); }

  protocol::SpillUse spill;
  std::vector<protocol::SpillFile> files;
  std::vector<uint32_t> called_back;
};

using LeaseClientSpillTest = ServedLeaseClient<SpillingSubject>;

TEST_F(LeaseClientSpillTest, AFileIsPassedOnWithItsDescriptorOnly) {
  const protocol::SpillFile file = {0, 3, 4096};
  subject.agent->Send(file);
  client.Step(3);
  EXPECT_TRUE(subject.files.empty()) << "the program had no descriptors left";

  const base::UniqueFd descriptor(memfd_create("spill", MFD_CLOEXEC));
  const int number = descriptor.get();
  subject.agent->Send(file, {&number, 1});
  subject.agent->Send(protocol::ReturnSpilled{0});
  client.Step(4);
  EXPECT_EQ(subject.files, std::vector<protocol::SpillFile>{file});
  EXPECT_EQ(subject.called_back, std::vector<uint32_t>{0});
}

// The agent may have given the process a file in an earlier session.
TEST_F(LeaseClientSpillTest, UseOfTheFileIsReportedOnceInASessionAndWhenItChanges) {
  client.Step(3 + kTurnNs);
  EXPECT_EQ(Hear<protocol::SpillUse>(), protocol::SpillUse{});

  subject.spill.serial = 3;
  subject.spill.stored_bytes = 70;
  client.Step(3 + 2 * kTurnNs);
  const auto use = Hear<protocol::SpillUse>();
  ASSERT_TRUE(use);
  EXPECT_EQ(*use, subject.spill);

  client.Step(3 + 3 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::SpillUse>());
}

class LeaseClientOfVersion10Test : public ServedLeaseClient<SpillingSubject> {
 protected:
  LeaseClientOfVersion10Test() : ServedLeaseClient(10) {}
};

TEST_F(LeaseClientOfVersion10Test, UseOfTheFileIsNotReported) {
  subject.spill.stored_bytes = 70;
  client.Step(2 + kTurnNs);
  EXPECT_FALSE(Hear<protocol::SpillUse>());
}

}  // namespace
}  // namespace spillway::interposer
