// What counts as complete, over the simulated driver: its host functions hold a stream until the test lets go.
#include "interposer/execute/timeline.h"

#include <gtest/gtest.h>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class TimelineTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    CUcontext context;
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuMemHostAlloc(&host_, kBytes, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuMemAlloc_v2(&device_, kBytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    Driver().cuStreamSynchronize(handle_);
    Driver().cuMemFree_v2(device_);
    Driver().cuMemFreeHost(host_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  // Work that takes long in simulated time.
  void Enqueue() { ASSERT_EQ(Driver().cuMemcpyHtoDAsync_v2(device_, host_, kBytes, handle_), CUDA_SUCCESS); }

  static constexpr size_t kBytes = size_t{64} << 20;
  CUstream handle_ = nullptr;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
  Timeline timeline_;
};

TEST_F(TimelineTest, WorkIsDoneOnlyWhenItsEventIs) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);

  EXPECT_FALSE(timeline_.Done(use));
  Driver().cuEventSynchronize(timeline_.EventFor(use));
  EXPECT_TRUE(timeline_.Done(use));
}

TEST_F(TimelineTest, LaterWorkIsNotDoneByAnEarlierCheckpoint) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use first = timeline_.Issue(stream);
  const CUevent event = timeline_.EventFor(first);
  Enqueue();
  const Use second = timeline_.Issue(stream);

  Driver().cuEventSynchronize(event);
  EXPECT_TRUE(timeline_.Done(first));
  EXPECT_FALSE(timeline_.Done(second));
}

TEST_F(TimelineTest, DestroyedStreamsWorkCountsUntilComplete) {
  StreamState* stream = timeline_.Of({handle_, false});
  Enqueue();
  const Use use = timeline_.Issue(stream);
  timeline_.Destroyed(handle_);
  Driver().cuStreamDestroy_v2(handle_);
  handle_ = nullptr;

  EXPECT_FALSE(timeline_.Done(use));
  EXPECT_FALSE(timeline_.Unfinished().empty());
  Driver().cuCtxSynchronize();
  EXPECT_TRUE(timeline_.Done(use));
  EXPECT_TRUE(timeline_.Unfinished().empty());
}

TEST_F(TimelineTest, DefaultStreamsOfBothFlavoursDiffer) {
  EXPECT_NE(timeline_.Of({nullptr, false}), timeline_.Of({nullptr, true}));
  EXPECT_EQ(timeline_.Of({nullptr, false}), timeline_.Of({CU_STREAM_LEGACY, true}));
  EXPECT_EQ(timeline_.Of({nullptr, true}), timeline_.Of({CU_STREAM_PER_THREAD, false}));
}

TEST(UseListTest, KeepsTheLatestUsePerStream) {
  Timeline timeline;
  StreamState* a = timeline.Of({reinterpret_cast<CUstream>(0x1000), false});
  StreamState* b = timeline.Of({reinterpret_cast<CUstream>(0x2000), false});
  UseList list;
  list.Add({a, 3});
  list.Add({b, 1});
  list.Add({a, 2});
  ASSERT_EQ(list.items().size(), 2u);
  EXPECT_EQ(list.items()[0].sequence, 3u);
}

}  // namespace
}  // namespace spillway::interposer
