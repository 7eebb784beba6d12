#include "simulator/driver/engine/device_queues.h"

#include <gtest/gtest.h>

#include "tests/unit/simulator_driver/plain_profile.h"

namespace spillway::simulator {
namespace {

class DeviceQueuesTest : public ::testing::Test {
 protected:
  OperationRef Add(Operation operation) {
    operation.device = 0;
    operation.sequence = next_sequence_++;
    auto added = std::make_shared<Operation>(std::move(operation));
    queues_.Add(added);
    return added;
  }

  OperationRef AddKernel(int multiprocessors, Nanos duration_ns, int priority = 0) {
    Operation kernel;
    kernel.resource = Resource::kCompute;
    kernel.multiprocessors = multiprocessors;
    kernel.duration_ns = duration_ns;
    kernel.priority = priority;
    return Add(std::move(kernel));
  }

  OperationRef AddCopy(Resource direction, std::uint64_t bytes) {
    Operation copy;
    copy.resource = direction;
    copy.link_bytes = bytes;
    return Add(std::move(copy));
  }

  // Ends the next operation at its time, and starts what then can.
  OperationRef End() {
    const OperationRef ended = queues_.NextToEnd();
    queues_.Retire(ended, ended->end_ns);
    queues_.Start(ended->end_ns);
    return ended;
  }

  const Profile profile_ = PlainProfile();
  DeviceQueues queues_{profile_, 1, nullptr};
  std::uint64_t next_sequence_ = 1;
};

TEST_F(DeviceQueuesTest, NoneOvertakesAKernelThatWaitsForMultiprocessors) {
  const auto running = AddKernel(6, 100);
  const auto wide = AddKernel(6, 10);
  const auto narrow = AddKernel(2, 10);

  queues_.Start(0);

  EXPECT_TRUE(queues_.IsComputing(running));
  EXPECT_FALSE(queues_.IsComputing(wide));
  EXPECT_FALSE(queues_.IsComputing(narrow)) << "it is behind the wide one";
  EXPECT_EQ(End(), running);
  EXPECT_TRUE(queues_.IsComputing(wide) && queues_.IsComputing(narrow));
  EXPECT_EQ(wide->end_ns, 110);
}

TEST_F(DeviceQueuesTest, LowerPriorityNumberStartsFirst) {
  AddKernel(10, 100);
  queues_.Start(0);
  const auto later = AddKernel(10, 10, 0);
  const auto urgent = AddKernel(10, 10, -1);

  End();

  EXPECT_TRUE(queues_.IsComputing(urgent));
  EXPECT_FALSE(queues_.IsComputing(later));
}

TEST_F(DeviceQueuesTest, CopiesOfBothDirectionsProgressAtTheBothWayRateWhileBothRun) {
  const auto out = AddCopy(Resource::kDeviceToHost, 100);
  const auto in = AddCopy(Resource::kHostToDevice, 300);

  queues_.Start(0);

  EXPECT_EQ(End(), out);
  EXPECT_EQ(out->end_ns, 200);
  // 100 of its bytes have passed; the others go alone.
  EXPECT_EQ(End(), in);
  EXPECT_EQ(in->end_ns, 400);
  EXPECT_EQ(queues_.NextToEnd(), nullptr);
}

TEST_F(DeviceQueuesTest, OneCopyOfADirectionRunsAtATime) {
  const auto first = AddCopy(Resource::kHostToDevice, 100);
  const auto second = AddCopy(Resource::kHostToDevice, 50);
  EXPECT_TRUE(queues_.CanStart());

  queues_.Start(0);

  EXPECT_FALSE(queues_.CanStart());
  EXPECT_EQ(End(), first);
  EXPECT_EQ(End(), second);
  EXPECT_EQ(second->end_ns, 150);
}

}  // namespace
}  // namespace spillway::simulator
