// Two devices of one job, where one uses the other's memory.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 16 * kMiB;

void Fill(const simulator::LaunchShape&, void* const* arguments) {
  auto* words = *static_cast<std::uint32_t* const*>(arguments[0]);
  const std::uint32_t value = *static_cast<const std::uint32_t*>(arguments[1]);
  for (size_t i = 0; i < kBytes / 4; ++i) words[i] = value;
}
constexpr simulator::KernelParameter kPointerAndValue[] = {{0, 8}, {8, 4}};
SPILLWAY_ONE_KERNEL(kFillImage, "fill16", Fill, nullptr, 2, kPointerAndValue);

// Like NCCL's kernels, by an address in memory.
void FillBehind(const simulator::LaunchShape&, void* const* arguments) {
  auto* const* place = *static_cast<std::uint32_t** const*>(arguments[0]);
  for (size_t i = 0; i < kBytes / 4; ++i) (*place)[i] = 77;
}
constexpr simulator::KernelParameter kPlace[] = {{0, 8}};
SPILLWAY_ONE_KERNEL(kFillBehindImage, "fill_behind", FillBehind, nullptr, 1, kPlace);

class PeersTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    SetSize("SPILLWAY_SIM_DEVICES", 2);
    Start();
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&other_, 1), CUDA_SUCCESS);
  }
  void UseOther() { ASSERT_EQ(cuCtxSetCurrent(other_), CUDA_SUCCESS); }
  void UseFirst() { ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS); }

  // Runs on the first device.
  static CUresult FillHere(CUfunction fill, CUdeviceptr address, std::uint32_t value) {
    void* parameters[] = {&address, &value};
    const CUresult launched = Launch(fill, nullptr, parameters);
    return launched == CUDA_SUCCESS ? cuCtxSynchronize() : launched;
  }

  CUcontext other_ = nullptr;
};

TEST_F(PeersTest, EachDeviceHasItsOwnBudget) {
  const auto here = FilledBuffers(6, kBytes);
  UseOther();
  const auto there = FilledBuffers(6, kBytes);
  for (unsigned int i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(there[i], kBytes, i)) << i;
  UseFirst();
  for (unsigned int i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(here[i], kBytes, i)) << i;
  EXPECT_LE(Statistics("device_bytes_peak.0"), 64 * kMiB);
  EXPECT_LE(Statistics("device_bytes_peak.1"), 64 * kMiB);
}

TEST_F(PeersTest, CopiesBetweenDevicesReachEvictedMemory) {
  const auto here = FilledBuffers(6, kBytes);
  UseOther();
  const auto there = FilledBuffers(6, kBytes);
  for (unsigned int i = 0; i < 6; ++i) {
    ASSERT_EQ(cuMemcpyPeer(there[i], other_, here[5 - i], context_, kBytes), CUDA_SUCCESS);
  }
  for (unsigned int i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(there[i], kBytes, 5 - i)) << i;
}

TEST_F(PeersTest, EnabledPeerReachesEarlierAndLaterMemory) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  UseOther();
  const CUdeviceptr before = Filled(kBytes, 1);
  const CUdeviceptr small = Filled(4096, 1);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  UseFirst();
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  UseOther();
  const CUdeviceptr after = Filled(kBytes, 2);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  UseFirst();
  EXPECT_EQ(FillHere(fill, before, 5), CUDA_SUCCESS);
  EXPECT_EQ(FillHere(fill, after, 6), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(before, kBytes, 5));
  EXPECT_TRUE(IsAll(after, kBytes, 6));
  EXPECT_TRUE(IsAll(small, 4096, 1));
}

TEST_F(PeersTest, AccessMayBeEnabledBeforeTheFirstAllocation) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  UseOther();
  const CUdeviceptr there = Allocated(kBytes);
  UseFirst();
  EXPECT_EQ(FillHere(fill, there, 5), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(there, kBytes, 5));
}

TEST_F(PeersTest, WithoutAccessAKernelFaults) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  UseOther();
  const CUdeviceptr there = Filled(kBytes, 1);
  UseFirst();
  EXPECT_EQ(FillHere(fill, there, 5), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(PeersTest, DisabledAccessEnds) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  UseOther();
  const CUdeviceptr there = Filled(kBytes, 1);
  UseFirst();
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  ASSERT_EQ(FillHere(fill, there, 5), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDisablePeerAccess(other_), CUDA_SUCCESS);
  EXPECT_EQ(FillHere(fill, there, 6), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// A peer may use an address that no call names, so such memory stays resident.
TEST_F(PeersTest, PeersReachMemoryThatNoCallNames) {
  const CUfunction fill_behind = Kernel(&kFillBehindImage, "fill_behind");
  UseOther();
  const CUdeviceptr there = Allocated(kBytes);  // not used yet
  UseFirst();
  CUdeviceptr place = Allocated(4096);
  ASSERT_EQ(cuMemcpyHtoD(place, &there, sizeof there), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  UseOther();
  FilledBuffers(3, kBytes);
  UseFirst();
  void* parameters[] = {&place};
  ASSERT_EQ(Launch(fill_behind, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  UseOther();
  EXPECT_TRUE(IsAll(there, kBytes, 77));
}

TEST_F(PeersTest, PeerMemoryIsGrantedUpToTheBudgetAndMovesAgainAfterwards) {
  UseOther();
  Filled(kBytes, 1);
  UseFirst();
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  UseOther();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  UseFirst();
  ASSERT_EQ(cuCtxDisablePeerAccess(other_), CUDA_SUCCESS);
  UseOther();
  EXPECT_EQ(cuMemAlloc(&address, 64 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(address, 1, 16 * kMiB), CUDA_SUCCESS);
}

TEST_F(PeersTest, JobBeyondItsBudgetCannotEnablePeerAccess) {
  UseOther();
  const auto there = FilledBuffers(6, kBytes);
  UseFirst();
  EXPECT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(cuCtxDisablePeerAccess(other_), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  UseOther();
  for (unsigned int i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(there[i], kBytes, i)) << i;
}

// Access to a pool covers all its memory. Regression: memory allocated before the grant stayed
// inaccessible (NVIDIA's sample streamOrderedAllocationP2P), even without a budget.
class PoolPeersTest : public PeersTest, public testing::WithParamInterface<bool> {
 protected:
  CUmemoryPool Pool() {
    CUmemoryPool pool = nullptr;
    if (GetParam()) {
      EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 1), CUDA_SUCCESS);
      return pool;
    }
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
  }
  static CUdeviceptr FilledFrom(CUmemoryPool pool, size_t bytes, unsigned int word) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&address, bytes, pool, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(address, word, bytes / 4), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return address;
  }
  static CUresult SetAccess(CUmemoryPool pool, CUmemAccess_flags flags) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
    return cuMemPoolSetAccess(pool, &access, 1);
  }
};

TEST_P(PoolPeersTest, AccessToAPoolCoversAllItsMemory) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  UseOther();
  const CUmemoryPool pool = Pool();
  const CUdeviceptr before = FilledFrom(pool, kBytes, 1), untouched = FilledFrom(pool, kBytes, 2);
  const CUdeviceptr small = FilledFrom(pool, 4096, 3);
  ASSERT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  const CUdeviceptr after = FilledFrom(pool, kBytes, 4);
  UseFirst();
  EXPECT_EQ(FillHere(fill, before, 5), CUDA_SUCCESS);
  EXPECT_EQ(FillHere(fill, after, 6), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(before, kBytes, 5));
  EXPECT_TRUE(IsAll(after, kBytes, 6));
  EXPECT_TRUE(IsAll(untouched, kBytes, 2));
  EXPECT_TRUE(IsAll(small, 4096, 3));
  UseOther();
  for (const CUdeviceptr piece : {before, untouched, small, after})
    EXPECT_EQ(cuMemFreeAsync(piece, nullptr), CUDA_SUCCESS);
}

TEST_P(PoolPeersTest, RevokedAccessEnds) {
  const CUfunction fill = Kernel(&kFillImage, "fill16");
  UseOther();
  const CUmemoryPool pool = Pool();
  const CUdeviceptr there = FilledFrom(pool, kBytes, 1);
  ASSERT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  UseFirst();
  ASSERT_EQ(FillHere(fill, there, 5), CUDA_SUCCESS);
  UseOther();
  ASSERT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_SUCCESS);
  FilledBuffers(4, kBytes);
  EXPECT_TRUE(IsAll(there, kBytes, 5));
  UseFirst();
  EXPECT_EQ(FillHere(fill, there, 6), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// By an address in memory that no call names. Memory that the other device may use stays, and the
// device's bytes are valid.
TEST_P(PoolPeersTest, PoolMemoryOpenToPeersStaysWhileTheRestMoves) {
  const CUfunction fill_behind = Kernel(&kFillBehindImage, "fill_behind");
  UseOther();
  const CUmemoryPool pool = Pool();
  const CUdeviceptr there = FilledFrom(pool, kBytes, 1);
  FilledBuffers(4, kBytes);  // evicts it
  ASSERT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_SUCCESS);
  const auto others = FilledBuffers(4, kBytes);
  UseFirst();
  CUdeviceptr place = Allocated(4096);
  ASSERT_EQ(cuMemcpyHtoD(place, &there, sizeof there), CUDA_SUCCESS);
  void* parameters[] = {&place};
  ASSERT_EQ(Launch(fill_behind, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  UseOther();
  for (unsigned int i = 0; i < 4; ++i) EXPECT_TRUE(IsAll(others[i], kBytes, i)) << i;
  ASSERT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_SUCCESS);
  FilledBuffers(4, kBytes);
  EXPECT_TRUE(IsAll(there, kBytes, 77));
  EXPECT_LE(Statistics("device_bytes_peak.1"), 64 * kMiB);
}

TEST_P(PoolPeersTest, PoolBeyondTheBudgetCannotBeOpenedToPeers) {
  UseOther();
  const CUmemoryPool pool = Pool();
  std::vector<CUdeviceptr> pieces;
  for (unsigned int i = 0; i < 6; ++i) pieces.push_back(FilledFrom(pool, kBytes, i));
  EXPECT_EQ(SetAccess(pool, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), CUDA_ERROR_OUT_OF_MEMORY);
  for (unsigned int i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(pieces[i], kBytes, i)) << i;
  EXPECT_LE(Statistics("device_bytes_peak.1"), 64 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(Pools, PoolPeersTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return std::string(info.param ? "Default" : "Own");
                         });

TEST_F(PeersTest, AccessEndsWithTheContextThatHadIt) {
  UseOther();
  Filled(kBytes, 1);
  CUcontext user = nullptr;
  ASSERT_EQ(cuCtxCreate_v4(&user, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(user), CUDA_SUCCESS);
  UseOther();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64 * kMiB), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
