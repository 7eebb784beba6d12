// Effects come as late as the rules allow, so programs that rely on more fail here.
#include <unistd.h>

#include <vector>

#include "driver_test.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

class LatenessTest : public DriverTest {
 protected:
  void MakeRange() {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ASSERT_OK(cuMemCreate(&handle_, kGranule, &properties, 0));
    ASSERT_OK(cuMemAddressReserve(&range_, kGranule, 0, 0, 0));
    MapRange();
  }

  void MapRange() {
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_OK(cuMemMap(range_, kGranule, 0, handle_, 0));
    ASSERT_OK(cuMemSetAccess(range_, kGranule, &access, 1));
  }

  void TearDown() override {
    DriverTest::TearDown();
    if (range_ == 0) return;
    CUcontext context = nullptr;
    cuCtxCreate(&context, nullptr, 0, 0);
    cuMemUnmap(range_, kGranule);
    cuMemRelease(handle_);
    cuMemAddressFree(range_, kGranule);
    cuCtxDestroy(context);
  }

  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr range_ = 0;
};

TEST_F(LatenessTest, PinnedSourceIsReadWhenTheCopyEnds) {
  int* source = nullptr;
  ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&source), 4, 0));
  CUdeviceptr target = 0;
  ASSERT_OK(cuMemAlloc(&target, 4));
  const CUstream stream = MakeStream();

  *source = 1;
  ASSERT_OK(cuMemcpyHtoDAsync(target, source, 4, stream));
  *source = 2;  // too early
  ASSERT_OK(cuStreamSynchronize(stream));

  int arrived = 0;
  ASSERT_OK(cuMemcpyDtoH(&arrived, target, 4));
  EXPECT_EQ(arrived, 2);
}

TEST_F(LatenessTest, PageableSourceIsTakenAtTheCall) {
  int source = 1;
  CUdeviceptr target = 0;
  ASSERT_OK(cuMemAlloc(&target, 4));
  const CUstream stream = MakeStream();

  ASSERT_OK(cuMemcpyHtoDAsync(target, &source, 4, stream));
  source = 2;
  ASSERT_OK(cuStreamSynchronize(stream));

  int arrived = 0;
  ASSERT_OK(cuMemcpyDtoH(&arrived, target, 4));
  EXPECT_EQ(arrived, 1);
}

TEST_F(LatenessTest, PinnedDestinationIsStaleUntilItsStreamIsDone) {
  int* target = nullptr;
  ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&target), 4, 0));
  CUdeviceptr source = 0;
  ASSERT_OK(cuMemAlloc(&source, 4));
  ASSERT_OK(cuMemsetD32(source, 7, 1));
  ASSERT_OK(cuCtxSynchronize());
  const CUstream stream = MakeStream();

  *target = 0;
  ASSERT_OK(cuMemcpyDtoHAsync(target, source, 4, stream));
  EXPECT_EQ(*target, 0);

  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(*target, 7);
}

TEST_F(LatenessTest, UnmappingUnderAKernelSucceedsEndsInAStickyErrorAndIsCounted) {
  MakeRange();
  const CUstream stream = MakeStream();
  const auto counted = spillway_sim_read("unmapped_while_in_use");
  Fill(range_, 4, 1, stream);

  EXPECT_OK(cuMemUnmap(range_, kGranule));

  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(spillway_sim_read("unmapped_while_in_use"), counted + 1);
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc(&other, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(LatenessTest, RemappingBeforeTheKernelEndsDoesNotHelp) {
  MakeRange();
  const CUstream stream = MakeStream();
  const auto counted = spillway_sim_read("unmapped_while_in_use");
  Fill(range_, 4, 1, stream);

  EXPECT_OK(cuMemUnmap(range_, kGranule));
  MapRange();

  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(spillway_sim_read("unmapped_while_in_use"), counted + 1);
}

TEST_F(LatenessTest, AddressThatAKernelDoesNotTouchMayBeUnmapped) {
  MakeRange();
  const CUstream stream = MakeStream();
  const auto counted = spillway_sim_read("unmapped_while_in_use");
  Fill(range_, 0, 1, stream);

  EXPECT_OK(cuMemUnmap(range_, kGranule));

  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(spillway_sim_read("unmapped_while_in_use"), counted);
}

TEST_F(LatenessTest, StalePointerDoesNotDamageTheNextMapping) {
  MakeRange();
  const CUstream stream = MakeStream();
  Fill(range_, 0, 1, stream);
  EXPECT_OK(cuMemUnmap(range_, kGranule));
  MapRange();

  Fill(range_, 1, 7, stream);

  int word = 0;
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuMemcpyDtoH(&word, range_, 4));
  EXPECT_EQ(word, 7);
}

TEST_F(LatenessTest, UnmappingAfterAWaitIsClean) {
  MakeRange();
  const CUstream stream = MakeStream();
  const auto counted = spillway_sim_read("unmapped_while_in_use");
  Fill(range_, 4, 1, stream);
  ASSERT_OK(cuStreamSynchronize(stream));

  EXPECT_OK(cuMemUnmap(range_, kGranule));

  EXPECT_EQ(spillway_sim_read("unmapped_while_in_use"), counted);
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(LatenessTest, UnmappingUnderACopyNamesTheCopy) {
  MakeRange();
  int* source = nullptr;
  ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&source), kGranule, 0));
  const CUstream stream = MakeStream();
  const auto counted = spillway_sim_read("illegal_accesses");
  ASSERT_OK(cuMemcpyHtoDAsync(range_, source, kGranule, stream));

  ::testing::internal::CaptureStderr();
  EXPECT_OK(cuMemUnmap(range_, kGranule));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);

  EXPECT_EQ(spillway_sim_read("illegal_accesses"), counted + 1);
  ::testing::internal::GetCapturedStderr();
}

TEST_F(LatenessTest, UnorderedStreamsShowTheRaceTheyHave) {
  CUdeviceptr word = 0;
  ASSERT_OK(cuMemAlloc(&word, 4));
  int* seen = nullptr;
  ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&seen), 4, 0));
  ASSERT_OK(cuMemsetD32(word, 5, 1));
  ASSERT_OK(cuCtxSynchronize());

  Fill(word, 1, 6, MakeStream());  // one millisecond
  const CUstream reader = MakeStream();
  ASSERT_OK(cuMemcpyDtoHAsync(seen, word, 4, reader));
  ASSERT_OK(cuStreamSynchronize(reader));

  EXPECT_EQ(*seen, 5);
}

TEST_F(LatenessTest, PeakCountsUnmappedHandles) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const auto before = spillway_sim_read("device_bytes_now");
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, 8 * kGranule, &properties, 0));

  EXPECT_EQ(spillway_sim_read("device_bytes_now"), before + 8 * kGranule);
  ASSERT_OK(cuMemRelease(handle));

  EXPECT_EQ(spillway_sim_read("device_bytes_now"), before);
  EXPECT_GE(spillway_sim_read("device_bytes_peak"), before + 8 * kGranule);
}

}  // namespace
}  // namespace spillway::simulator
