// cudaFree returned before earlier work was done, even without a budget. Programs that use it as
// their only wait read stale bytes. Without Spillway, cuMemFree waits for its context; such a
// program must see everything as if it had.
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::KernelCost;
using simulator::KernelParameter;
using simulator::LaunchShape;

void StoreBody(const LaunchShape&, void* const* arguments) {
  auto* const target = *static_cast<std::uint32_t* const*>(arguments[0]);
  *target = *static_cast<const std::uint32_t*>(arguments[1]);
}
// target[index] = value
void StoreAtBody(const LaunchShape&, void* const* arguments) {
  auto* const target = *static_cast<std::uint32_t* const*>(arguments[0]);
  target[*static_cast<const std::int64_t*>(arguments[2])] =
      *static_cast<const std::uint32_t*>(arguments[1]);
}
// *target = *source
void CarryBody(const LaunchShape&, void* const* arguments) {
  **static_cast<std::uint32_t* const*>(arguments[0]) =
      **static_cast<const std::uint32_t* const*>(arguments[1]);
}
void FollowBody(const LaunchShape&, void* const* arguments) {
  auto* const* const target = *static_cast<std::uint32_t* const* const*>(arguments[0]);
  **target = *static_cast<const std::uint32_t*>(arguments[1]);
}
// A kernel stores an address in memory.
void KeepBody(const LaunchShape&, void* const* arguments) {
  auto* const target = *static_cast<CUdeviceptr* const*>(arguments[0]);
  *target = *static_cast<const CUdeviceptr*>(arguments[1]);
}
// About a millisecond of a GPU, so work is in flight while the program continues.
KernelCost Slow(const LaunchShape&, void* const*) { return {20'000'000'000, 0}; }
constexpr KernelParameter kStoreParameters[] = {{0, 8}, {8, 4}};
constexpr KernelParameter kStoreAtParameters[] = {{0, 8}, {8, 4}, {16, 8}};
constexpr KernelParameter kCarryParameters[] = {{0, 8}, {8, 8}};
SPILLWAY_ONE_KERNEL(kStoreImage, "store", StoreBody, Slow, 2, kStoreParameters);
SPILLWAY_ONE_KERNEL(kStoreAtImage, "store_at", StoreAtBody, Slow, 3, kStoreAtParameters);
SPILLWAY_ONE_KERNEL(kCarryImage, "carry", CarryBody, Slow, 2, kCarryParameters);
SPILLWAY_ONE_KERNEL(kFollowImage, "follow", FollowBody, Slow, 2, kStoreParameters);
SPILLWAY_ONE_KERNEL(kKeepImage, "keep", KeepBody, Slow, 2, kCarryParameters);

constexpr size_t kBytes = 8 * kMiB;

class FreeWaitsTest : public JobTest {
 protected:
  void Begin() {
    Start();
    store_ = Kernel(&kStoreImage, "store");
    carry_ = Kernel(&kCarryImage, "carry");
    for (CUstream& stream : streams_)
      ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAllocHost(reinterpret_cast<void**>(&pinned_), kBytes), CUDA_SUCCESS);
    std::memset(pinned_, 0, kBytes);
    buffer_ = Filled(kBytes, 1);
    other_ = Filled(kBytes, 2);
    freed_ = Filled(kBytes, 3);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  void Store(CUdeviceptr target, std::uint32_t value, CUstream stream) {
    void* parameters[] = {&target, &value};
    EXPECT_EQ(Launch(store_, stream, parameters), CUDA_SUCCESS);
  }
  void Store(const void* target, std::uint32_t value, CUstream stream) {
    Store(reinterpret_cast<CUdeviceptr>(target), value, stream);
  }
  void Carry(CUdeviceptr target, CUdeviceptr source, CUstream stream) {
    void* parameters[] = {&target, &source};
    EXPECT_EQ(Launch(carry_, stream, parameters), CUDA_SUCCESS);
  }
  void Free() { EXPECT_EQ(cuMemFree(freed_), CUDA_SUCCESS); }
  static std::uint32_t WordAt(CUdeviceptr address) {
    std::uint32_t word = 0;
    EXPECT_EQ(cuMemcpyDtoH(&word, address, sizeof word), CUDA_SUCCESS);
    return word;
  }

  CUfunction store_ = nullptr, carry_ = nullptr;
  CUstream streams_[2] = {};
  std::uint32_t* pinned_ = nullptr;
  CUdeviceptr buffer_ = 0, other_ = 0, freed_ = 0;
};

TEST_F(FreeWaitsTest, CopyToTheHostIsCompleteAfterAFree) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, buffer_, kBytes, streams_[0]), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
  EXPECT_EQ(pinned_[kBytes / 4 - 1], 1u);
}

TEST_F(FreeWaitsTest, ShapedCopyToTheHostIsCompleteAfterAFree) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = buffer_;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(pinned_);
  copy.WidthInBytes = 4096;
  copy.Height = 1;
  ASSERT_EQ(cuMemcpy2DAsync(&copy, streams_[0]), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
}

TEST_F(FreeWaitsTest, SourceOfACopyIsReusableAfterAFree) {
  Begin();
  pinned_[0] = 42;
  Store(buffer_, 41, streams_[0]);
  ASSERT_EQ(cuMemcpyHtoDAsync(buffer_, pinned_, kBytes, streams_[0]), CUDA_SUCCESS);
  Free();
  pinned_[0] = 43;
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(buffer_), 42u);
}

TEST_F(FreeWaitsTest, KernelsWritesToPinnedMemoryAreCompleteAfterAFree) {
  Begin();
  Store(pinned_, 42, streams_[0]);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
}

TEST_F(FreeWaitsTest, KernelsWritesBesideItsPointerAreCompleteAfterAFree) {
  Begin();
  for (const std::int64_t beside :
       {std::int64_t{-1}, std::int64_t{-1000}, std::int64_t{kBytes / 4 + 900}}) {
    auto from = reinterpret_cast<CUdeviceptr>(pinned_ + beside);
    std::int64_t index = -beside;
    std::uint32_t value = 42;
    void* parameters[] = {&from, &value, &index};
    pinned_[0] = 0;
    EXPECT_EQ(Launch(Kernel(&kStoreAtImage, "store_at"), streams_[0], parameters), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(Allocated(kBytes)), CUDA_SUCCESS);
    EXPECT_EQ(pinned_[0], 42u) << beside;
  }
}

TEST_F(FreeWaitsTest, KernelsWritesToRegisteredMemoryAreCompleteAfterAFree) {
  Begin();
  static std::uint32_t words[4096];
  ASSERT_EQ(cuMemHostRegister(words, sizeof words, 0), CUDA_SUCCESS);
  Store(&words[100], 42, streams_[0]);
  Free();
  EXPECT_EQ(words[100], 42u);
}

TEST_F(FreeWaitsTest, KernelsWritesToManagedMemoryAreCompleteAfterAFree) {
  Begin();
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  Store(managed, 42, streams_[0]);
  Free();
  EXPECT_EQ(*reinterpret_cast<std::uint32_t*>(managed), 42u);
}

TEST_F(FreeWaitsTest, WritesByACopiedHostAddressAreCompleteAfterAFree) {
  Begin();
  const CUfunction follow = Kernel(&kFollowImage, "follow");
  const auto address = reinterpret_cast<CUdeviceptr>(pinned_ + 5);
  ASSERT_EQ(cuMemcpyHtoD(buffer_, &address, sizeof address), CUDA_SUCCESS);
  std::uint32_t value = 42;
  void* parameters[] = {&buffer_, &value};
  ASSERT_EQ(Launch(follow, streams_[0], parameters), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[5], 42u);
}

TEST_F(FreeWaitsTest, WritesByAStoredHostAddressAreCompleteAfterAFree) {
  Begin();
  const CUfunction keep = Kernel(&kKeepImage, "keep"), follow = Kernel(&kFollowImage, "follow");
  auto address = reinterpret_cast<CUdeviceptr>(pinned_ + 5);
  void* kept[] = {&buffer_, &address};
  ASSERT_EQ(Launch(keep, streams_[0], kept), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  std::uint32_t value = 42;
  void* parameters[] = {&buffer_, &value};
  ASSERT_EQ(Launch(follow, streams_[0], parameters), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[5], 42u);
}

TEST_F(FreeWaitsTest, HostFunctionIsCompleteAfterAFree) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  const CUhostFn mark = [](void* flag) { *static_cast<int*>(flag) = 42; };
  int flag = 0;
  ASSERT_EQ(cuLaunchHostFunc(streams_[0], mark, &flag), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(flag, 42);
}

TEST_F(FreeWaitsTest, StreamWritesAndSetsOfHostMemoryAreCompleteAfterAFree) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  const auto words = reinterpret_cast<CUdeviceptr>(pinned_);
  ASSERT_EQ(cuStreamWriteValue32(streams_[0], words, 42, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(words + 4, 43, 1, streams_[0]), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
  EXPECT_EQ(pinned_[1], 43u);
}

TEST_F(FreeWaitsTest, CopyFromAnArrayToTheHostIsCompleteAfterAFree) {
  Begin();
  CUDA_ARRAY_DESCRIPTOR line{1024, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate(&array, &line), CUDA_SUCCESS);
  Store(buffer_, 42, nullptr);
  ASSERT_EQ(cuMemcpyDtoA(array, 0, buffer_, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyAtoHAsync(pinned_, array, 0, 4096, nullptr), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
}

TEST_F(FreeWaitsTest, GraphsCopyToTheHostIsCompleteAfterAFree) {
  Begin();
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, buffer_, kBytes, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(streams_[0], &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, streams_[0]), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
}

TEST_F(FreeWaitsTest, FreeOfASmallAllocationWaitsToo) {
  Begin();
  const CUdeviceptr small = Filled(1024, 1);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, buffer_, kBytes, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(small), CUDA_SUCCESS);
  EXPECT_EQ(pinned_[0], 42u);
}

TEST_F(FreeWaitsTest, FreeAwaitsWorkFromBeforeTheFirstAllocation) {
  Start();
  store_ = Kernel(&kStoreImage, "store");
  ASSERT_EQ(cuMemAllocHost(reinterpret_cast<void**>(&pinned_), kBytes), CUDA_SUCCESS);
  pinned_[0] = 0;
  Store(pinned_, 42, nullptr);
  freed_ = Allocated(kBytes);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
}

// The second free found nothing left to await.
TEST_F(FreeWaitsTest, BothFreesAwaitWorkFromBeforeTheFirstAllocation) {
  static std::atomic<int> entered{0}, done{0};
  static std::atomic<bool> goes_on{false}, is_complete{false};
  Start();
  const CUhostFn wait = [](void*) {
    while (!goes_on) std::this_thread::yield();
    is_complete = true;
  };
  ASSERT_EQ(cuLaunchHostFunc(nullptr, wait, nullptr), CUDA_SUCCESS);
  const auto free_one = [this](CUdeviceptr address) {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ++entered;
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    ++done;
    EXPECT_TRUE(is_complete);
  };
  std::thread one(free_one, Allocated(kBytes)), other(free_one, Allocated(kBytes));
  while (entered < 2) std::this_thread::yield();
  for (int i = 0; i < 10000 && done == 0; ++i) std::this_thread::yield();
  goes_on = true;
  one.join();
  other.join();
}

// A launch began before the first allocation and reached the driver after another thread had
// allocated and freed memory: no free waited for it. Here an unreadable page of parameters delays
// it.
char* held_page = nullptr;
CUcontext held_context = nullptr;
void LetAnotherThreadBegin(int) {
  std::thread([] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuCtxSetCurrent(held_context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&address, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  }).join();
  mprotect(held_page, 4096, PROT_READ | PROT_WRITE);
}

TEST_F(FreeWaitsTest, WorkOfAnotherThreadDuringTheFirstAllocationIsAwaited) {
  Start();
  store_ = Kernel(&kStoreImage, "store");
  ASSERT_EQ(cuMemAllocHost(reinterpret_cast<void**>(&pinned_), kBytes), CUDA_SUCCESS);
  pinned_[0] = 0;
  held_context = context_;
  held_page = static_cast<char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memcpy(held_page, &pinned_, sizeof pinned_);
  std::uint32_t value = 42;
  void* parameters[] = {held_page, &value};
  ASSERT_EQ(mprotect(held_page, 4096, PROT_NONE), 0);
  const auto before = signal(SIGSEGV, LetAnotherThreadBegin);
  EXPECT_EQ(Launch(store_, nullptr, parameters), CUDA_SUCCESS);
  signal(SIGSEGV, before);
  EXPECT_EQ(cuMemFree(Allocated(kBytes)), CUDA_SUCCESS);
  EXPECT_EQ(pinned_[0], 42u);
}

// A free in a relaxed capture waits for running work and does not disturb the capture.
TEST_F(FreeWaitsTest, FreeDuringARelaxedCaptureWaits) {
  Begin();
  CUgraph graph = nullptr;
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, buffer_, kBytes, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  Store(buffer_, 43, streams_[0]);
  Free();
  EXPECT_EQ(pinned_[0], 42u);
  EXPECT_EQ(cuStreamEndCapture(streams_[0], &graph), CUDA_SUCCESS);
}

TEST_F(FreeWaitsTest, EventsAndStreamsAreReadyAfterAFree) {
  Begin();
  CUevent begin = nullptr, end = nullptr;
  ASSERT_EQ(cuEventCreate(&begin, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&end, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(begin, streams_[0]), CUDA_SUCCESS);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuEventRecord(end, streams_[0]), CUDA_SUCCESS);
  Free();
  EXPECT_EQ(cuEventQuery(end), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(streams_[0]), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
  EXPECT_GT(milliseconds, 0.1f);
}

TEST_F(FreeWaitsTest, ElapsedTimesAreKnownAfterAFree) {
  Begin();
  CUevent begin = nullptr, end = nullptr;
  ASSERT_EQ(cuEventCreate(&begin, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&end, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(begin, streams_[0]), CUDA_SUCCESS);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuEventRecord(end, streams_[0]), CUDA_SUCCESS);
  Free();
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
}

TEST_F(FreeWaitsTest, LaterWorkOnAnotherStreamSeesWorkFromBeforeTheFree) {
  Begin();
  Store(buffer_, 41, streams_[0]);
  Store(buffer_, 42, streams_[0]);
  Free();
  Carry(other_, buffer_, streams_[1]);
  ASSERT_EQ(cuStreamSynchronize(streams_[1]), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(other_), 42u);
}

TEST_F(FreeWaitsTest, EventsAfterAFreeFollowTheWorkBeforeIt) {
  Begin();
  CUevent first = nullptr, second = nullptr;
  ASSERT_EQ(cuEventCreate(&first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&second, 0), CUDA_SUCCESS);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuEventRecord(first, streams_[0]), CUDA_SUCCESS);
  Free();
  ASSERT_EQ(cuEventRecord(second, streams_[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, first, second), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 0.0f);
}

// Work before the free wrote an array's source. Only the free orders the copy out of the array
// after it.
TEST_F(FreeWaitsTest, ArrayCopiesAfterAFreeSeeWorkFromBeforeIt) {
  Begin();
  CUDA_ARRAY_DESCRIPTOR line{1024, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate(&array, &line), CUDA_SUCCESS);
  CUDA_MEMCPY2D fill{};
  fill.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  fill.srcDevice = buffer_;
  fill.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  fill.dstArray = array;
  fill.WidthInBytes = 4096;
  fill.Height = 1;
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpy2DAsync(&fill, streams_[0]), CUDA_SUCCESS);
  Free();
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyAtoH(&word, array, 0, sizeof word), CUDA_SUCCESS);
  EXPECT_EQ(word, 42u);
}

// A wait for work before the free must not wait for work after it, because that may wait for the
// program.
TEST_F(FreeWaitsTest, QueriesAfterAFreeDoNotWaitForLaterWork) {
  Begin();
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuEventRecord(event, streams_[0]), CUDA_SUCCESS);
  Free();
  ASSERT_EQ(cuStreamWaitValue32(streams_[0], reinterpret_cast<CUdeviceptr>(pinned_), 7,
                                CU_STREAM_WAIT_VALUE_EQ),
            CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(streams_[0]), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  *static_cast<volatile std::uint32_t*>(pinned_) = 7;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(FreeWaitsTest, OtherStreamsDoNotWaitForWorkAfterAFree) {
  Begin();
  Store(other_, 1, streams_[1]);
  Store(buffer_, 42, streams_[0]);
  Free();
  ASSERT_EQ(cuStreamWaitValue32(streams_[0], reinterpret_cast<CUdeviceptr>(pinned_), 7,
                                CU_STREAM_WAIT_VALUE_EQ),
            CUDA_SUCCESS);
  Carry(other_, buffer_, streams_[1]);
  EXPECT_EQ(cuStreamSynchronize(streams_[1]), CUDA_SUCCESS);
  *static_cast<volatile std::uint32_t*>(pinned_) = 7;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(other_), 42u);
}

// A free does not wait for work whose effects cannot be seen; that makes it cheap.
TEST_F(FreeWaitsTest, FreeWithoutVisibleWorkReturnsAtOnce) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  const auto before_ns = Statistics("simulated_ns");
  Free();
  EXPECT_LT(Statistics("simulated_ns") - before_ns, 100'000u);
  EXPECT_EQ(WordAt(buffer_), 42u);
}

TEST_F(FreeWaitsTest, FreeWaitsForVisibleWorkOnly) {
  Begin();
  Store(buffer_, 42, streams_[0]);
  ASSERT_EQ(cuMemcpyDtoHAsync(pinned_, buffer_, 4096, streams_[0]), CUDA_SUCCESS);
  const auto before_ns = Statistics("simulated_ns");
  for (int i = 0; i < 20; ++i) Store(buffer_, 43, streams_[0]);
  Free();
  const auto waited_ns = Statistics("simulated_ns") - before_ns;
  EXPECT_EQ(pinned_[0], 42u);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_LT(waited_ns * 4, Statistics("simulated_ns") - before_ns);
}

// "This API will not perform any implicit synchronization when the pointer was allocated with
// cuMemAllocAsync" (cuda.h, cuMemFree). A program may use such a free while a stream waits for the
// program.
TEST_F(FreeWaitsTest, FreeOfPoolMemoryDoesNotWait) {
  Begin();
  CUdeviceptr pooled = 0;
  ASSERT_EQ(cuMemAllocAsync(&pooled, kBytes, streams_[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(streams_[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitValue32(streams_[0], reinterpret_cast<CUdeviceptr>(pinned_), 7,
                                CU_STREAM_WAIT_VALUE_EQ),
            CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(pooled), CUDA_SUCCESS);
  *static_cast<volatile std::uint32_t*>(pinned_) = 7;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
