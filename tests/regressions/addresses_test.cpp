// Kernels followed addresses that no copy had put into memory, and found evicted memory unmapped.
//
// The differential fuzzer found it on a busy machine. A full scan proved the job after a kernel's
// table of addresses was freed. The same kernel filled the next table, and no scan looked at it.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::Image;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

void WriteAddress(const LaunchShape&, void* const* arguments) {
  **static_cast<std::uint64_t* const*>(arguments[0]) =
      *static_cast<const std::uint64_t*>(arguments[1]);
}
void FollowAddress(const LaunchShape&, void* const* arguments) {
  ++***static_cast<std::uint32_t** const*>(arguments[0]);
}
void Increment(const LaunchShape&, void* const* arguments) {
  ++**static_cast<std::uint32_t* const*>(arguments[0]);
}
constexpr KernelParameter kParameters[] = {{0, 8}, {8, 8}};
const KernelEntry kKernels[] = {{"write_address", WriteAddress, nullptr, 2, kParameters},
                                {"follow_address", FollowAddress, nullptr, 1, kParameters},
                                {"increment", Increment, nullptr, 1, kParameters}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 3, kKernels, 0, nullptr};

constexpr size_t kBytes = 8 * kMiB;

class AddressesTest : public JobTest {
 protected:
  void Start() {
    JobTest::Start();
    CUmodule module;
    ASSERT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&write_, module, "write_address"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&follow_, module, "follow_address"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&increment_, module, "increment"), CUDA_SUCCESS);
    others_ = FilledBuffers(12, kBytes);
  }
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }
  // After some rounds the job has had a full scan.
  void UseOthers(int rounds) const {
    for (int round = 0; round < rounds; ++round) {
      for (CUdeviceptr other : others_) Run(increment_, other);
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  static void Run(CUfunction kernel, CUdeviceptr first, CUdeviceptr second = 0) {
    void* parameters[] = {&first, &second};
    EXPECT_EQ(Launch(kernel, nullptr, parameters), CUDA_SUCCESS);
  }
  // A kernel fills a table that leads to a buffer, and another one follows the address.
  void FollowATable() const {
    const CUdeviceptr buffer = Filled(kBytes, 5), table = Allocated(sizeof buffer);
    Run(write_, table, buffer);
    UseOthers(1);
    Run(follow_, table);
    ASSERT_TRUE(IsAll(buffer, 4, 6));
    EXPECT_EQ(cuMemFree(table), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
  }

  CUfunction write_ = nullptr, follow_ = nullptr, increment_ = nullptr;
  std::vector<CUdeviceptr> others_;
};

TEST_F(AddressesTest, KernelThatFilledATableBeforeMemoryWasShortIsScanned) {
  JobTest::Start();
  CUmodule module;
  ASSERT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&write_, module, "write_address"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&follow_, module, "follow_address"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&increment_, module, "increment"), CUDA_SUCCESS);
  FollowATable();
  others_ = FilledBuffers(12, kBytes);
  UseOthers(20);

  for (int i = 0; i < 3 && !HasFailure(); ++i) FollowATable();
}

TEST_F(AddressesTest, KernelWhoseTableWasFreedBeforeTheFullScanIsRemembered) {
  Start();
  UseOthers(1);
  const CUdeviceptr buffer = Filled(kBytes, 5), table = Allocated(sizeof buffer);
  Run(write_, table, buffer);
  Run(follow_, table);
  EXPECT_TRUE(IsAll(buffer, 4, 6));
  EXPECT_EQ(cuMemFree(table), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
  UseOthers(20);

  for (int i = 0; i < 3 && !HasFailure(); ++i) FollowATable();
}

TEST_F(AddressesTest, GraphThatFillsATableIsScanned) {
  Start();
  CUstream stream;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUdeviceptr buffer = Filled(kBytes, 5), table = Allocated(sizeof buffer);
  void* parameters[] = {&table, &buffer};
  CUgraph graph;
  CUgraphExec executable;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(Launch(write_, stream, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    UseOthers(1);
    Run(follow_, table);
    ASSERT_TRUE(IsAll(buffer, 4, static_cast<std::uint32_t>(6 + i)));
    EXPECT_EQ(cuMemsetD8(table, 0, sizeof table), CUDA_SUCCESS);
    UseOthers(20);
  }
}

// Copied words were forgotten if no allocation lay at their address. When memory was allocated
// there later, they were unknown addresses. A harmless job then parked for good, and kernels that
// followed the words met unmapped memory.
TEST_F(AddressesTest, CopiedAddressOfLaterAllocatedMemoryIsFollowed) {
  Start();
  CUdeviceptr buffer = Filled(kBytes, 5);
  const CUdeviceptr table = Allocated(sizeof buffer);
  ASSERT_EQ(cuMemcpyHtoD(table, &buffer, sizeof buffer), CUDA_SUCCESS);
  Run(follow_, table);
  UseOthers(20);

  ASSERT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(table, 0, sizeof table), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(table, &buffer, sizeof buffer), CUDA_SUCCESS);
  const CUdeviceptr again = Filled(kBytes, 5);
  ASSERT_EQ(again, buffer) << "the test needs the same place";
  UseOthers(3);

  Run(follow_, table);
  EXPECT_TRUE(IsAll(again, 4, 6));
}

// Half a second without any completion counted as a proof. Pending work may have reached the memory
// by addresses: behind a wait for the program, behind a long kernel, on a busy machine.
class PendingStreamWaitTest : public AddressesTest {
 protected:
  void SetUp() override {
    AddressesTest::SetUp();
    JobTest::Start();
    buffers_ = FilledBuffers(8, kBytes);
    ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(&flag_), 4096, CU_MEMHOSTALLOC_DEVICEMAP),
              CUDA_SUCCESS);
    *flag_ = 0;
    CUdeviceptr flag_address = 0;
    CUstream held;
    ASSERT_EQ(cuMemHostGetDevicePointer(&flag_address, flag_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitValue32(held, flag_address, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(buffers_[0], 7, 1, held), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("d2h_bytes"), 0u) << "memory has moved";
    *static_cast<volatile std::uint32_t*>(flag_) = 1;
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_TRUE(IsAll(buffers_[0], 4, 7));
    AddressesTest::TearDown();
  }

  std::uint32_t* flag_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
  CUstream stream_ = nullptr;
};

TEST_F(PendingStreamWaitTest, EvictedMemoryIsUsedWhereItIsParked) {
  const CUdeviceptr more = Allocated(kBytes);

  EXPECT_EQ(cuMemsetD32Async(more, 3, kBytes / 4, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(PendingStreamWaitTest, SmallAllocationsAreParkedToo) {
  const CUdeviceptr small = Allocated(256);

  EXPECT_EQ(cuMemsetD32Async(small, 3, 64, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
