// Calls that wait for work in flight: docs/implicit_synchronisation.md as cases.
//
// Work spins for a while on a non-blocking stream and then sets a word of pinned memory, which
// shows whether the call waited. Where the documents leave that open, the case records the driver's
// behaviour. The simulated driver behaves like the table, also under Spillway.
#include <sys/mman.h>

#include <cstdlib>

#include "tests/contract/device.h"
#include "tests/contract/simulated.h"

namespace spillway::contract {
namespace {

constexpr double kSpinMs = 50;

// The stream's work will set the first pinned word to 1.
struct InFlight {
  std::uint32_t* words = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr buffer = 0, other = 0;

  std::uint32_t Word() const { return *static_cast<volatile std::uint32_t*>(words); }
  void Begin() const { Spin(kSpinMs, stream, reinterpret_cast<CUdeviceptr>(words), 1); }
};

// Nothing is in flight yet.
InFlight Prepared() {
  UseDevice();
  InFlight all;
  void* memory = nullptr;
  ASSERT_OK(cuMemHostAlloc(&memory, kMiB, 0));
  all.words = static_cast<std::uint32_t*>(memory);
  for (std::size_t i = 0; i < kMiB / 4; ++i) all.words[i] = 0;
  all.stream = MakeStream();
  all.buffer = Allocate(4 * kMiB);
  all.other = Allocate(4 * kMiB);
  Fill(all.buffer, 5, kMiB);
  Kernel("spin");
  ASSERT_OK(cuCtxSynchronize());
  return all;
}

// Records behaviour that the documents leave open.
void Tell(const char* call, bool waited, bool simulated_driver_waits) {
  OBSERVE(call, waited ? "waits" : "does not wait");
  if (DriverIsSimulated()) EXPECT_EQ(waited, simulated_driver_waits);
}

CUdeviceptr PooledMemory(CUstream stream) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemAllocAsync(&address, 4 * kMiB, stream));
  ASSERT_OK(cuCtxSynchronize());
  return address;
}

}  // namespace

CONTRACT(ImplicitWaits, FreeWaitsForKernels,
         "cuda.h:8680 cuMemFree may synchronise; programs rely on it") {
  const InFlight work = Prepared();
  work.Begin();
  ASSERT_OK(cuMemFree(work.other));
  EXPECT_EQ(work.Word(), 1u);
}

CONTRACT(ImplicitWaits, FreeWaitsForCopiesToTheHost, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  Spin(kSpinMs, work.stream);
  ASSERT_OK(cuMemcpyDtoHAsync(work.words, work.buffer, 4, work.stream));
  ASSERT_OK(cuMemFree(work.other));
  EXPECT_EQ(work.Word(), 5u);
}

CONTRACT(ImplicitWaits, FreeWaitsForCopiesFromTheHost, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  work.words[0] = 7;
  Spin(kSpinMs, work.stream);
  ASSERT_OK(cuMemcpyHtoDAsync(work.buffer, work.words, 4, work.stream));
  ASSERT_OK(cuMemFree(work.other));
  work.words[0] = 8;
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(ReadWord(work.buffer), 7u);
}

CONTRACT(ImplicitWaits, FreeWaitsForHostFunctions, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  Spin(kSpinMs, work.stream);
  ASSERT_OK(cuLaunchHostFunc(
      work.stream, [](void* word) { *static_cast<std::uint32_t*>(word) = 3; }, work.words));
  ASSERT_OK(cuMemFree(work.other));
  EXPECT_EQ(work.Word(), 3u);
}

CONTRACT(ImplicitWaits, AfterAFreeEventsAndStreamsAreReady, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  const CUevent event = MakeEvent();
  Spin(kSpinMs, work.stream);
  ASSERT_OK(cuEventRecord(event, work.stream));
  ASSERT_OK(cuMemFree(work.other));
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuStreamQuery(work.stream));
}

CONTRACT(ImplicitWaits, AfterAFreeOtherStreamsSeeEarlierWork, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  const CUstream reader = MakeStream();
  Spin(kSpinMs, work.stream, work.buffer, 9);
  ASSERT_OK(cuMemFree(work.other));
  ASSERT_OK(cuMemcpyDtoHAsync(work.words, work.buffer, 4, reader));
  ASSERT_OK(cuStreamSynchronize(reader));
  EXPECT_EQ(work.Word(), 9u);
}

CONTRACT(ImplicitWaits, FreeOfPoolMemoryDoesNotWait,
         "cuda.h:8680 cuMemFree, no implicit synchronisation") {
  const InFlight work = Prepared();
  const CUdeviceptr pooled = PooledMemory(work.stream);
  work.Begin();
  ASSERT_OK(cuMemFree(pooled));
  EXPECT_EQ(work.Word(), 0u);
}

CONTRACT(ImplicitWaits, StreamOrderedCallsDoNotWait,
         "cuda.h:13325 cuMemAllocAsync, cuMemFreeAsync") {
  const InFlight work = Prepared();
  const CUdeviceptr pooled = PooledMemory(work.stream);
  CUdeviceptr more = 0;
  work.Begin();
  ASSERT_OK(cuMemAllocAsync(&more, kMiB, work.stream));
  ASSERT_OK(cuMemFreeAsync(pooled, work.stream));
  EXPECT_EQ(work.Word(), 0u);
}

CONTRACT(ImplicitWaits, DestroyingStreamsAndEventsDoesNotWait,
         "cuda.h cuStreamDestroy; :16111 cuEventDestroy") {
  const InFlight work = Prepared();
  const CUevent event = MakeEvent();
  work.Begin();
  ASSERT_OK(cuEventRecord(event, work.stream));
  ASSERT_OK(cuEventDestroy(event));
  ASSERT_OK(cuStreamDestroy(work.stream));
  EXPECT_EQ(work.Word(), 0u);
}

CONTRACT(ImplicitWaits, SetOfDeviceMemoryDoesNotWait, "API synchronization behavior, memset") {
  const InFlight work = Prepared();
  work.Begin();
  ASSERT_OK(cuMemsetD32(work.other, 1, kMiB));
  EXPECT_EQ(work.Word(), 0u);
}

CONTRACT(ImplicitWaits, SetOfPinnedMemoryIsComplete, "API synchronization behavior, memset") {
  const InFlight work = Prepared();
  Spin(kSpinMs, nullptr);
  ASSERT_OK(cuMemsetD32(reinterpret_cast<CUdeviceptr>(work.words), 4, 16));
  EXPECT_EQ(work.Word(), 4u);
}

CONTRACT(ImplicitWaits, CopyWithinTheDeviceDoesNotWait, "API synchronization behavior, memcpy") {
  const InFlight work = Prepared();
  work.Begin();
  ASSERT_OK(cuMemcpyDtoD(work.other, work.buffer, kMiB));
  EXPECT_EQ(work.Word(), 0u);
}

CONTRACT(ImplicitWaits, CopyToTheHostIsComplete, "API synchronization behavior, memcpy") {
  const InFlight work = Prepared();
  Spin(kSpinMs, nullptr, work.buffer, 6);
  std::uint32_t pageable = 0;
  ASSERT_OK(cuMemcpyDtoH(&pageable, work.buffer, 4));
  EXPECT_EQ(pageable, 6u);
}

CONTRACT(ImplicitWaits, CopyFromPinnedMemoryIsComplete, "API synchronization behavior, memcpy") {
  const InFlight work = Prepared();
  work.words[0] = 7;
  Spin(kSpinMs, nullptr);
  ASSERT_OK(cuMemcpyHtoD(work.buffer, work.words, 4));
  work.words[0] = 8;
  EXPECT_EQ(ReadWord(work.buffer), 7u);
}

CONTRACT(ImplicitWaits, PageableSourceIsReusableAfterAnAsynchronousCopy,
         "API synchronization behavior, memcpy: staged before the call returns") {
  const InFlight work = Prepared();
  std::uint32_t pageable = 7;
  Spin(kSpinMs, work.stream);
  ASSERT_OK(cuMemcpyHtoDAsync(work.buffer, &pageable, 4, work.stream));
  pageable = 8;
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(ReadWord(work.buffer), 7u);
}

CONTRACT(ImplicitWaits, AsynchronousCopyToPageableMemory,
         "API synchronization behavior, memcpy: might be synchronous") {
  const InFlight work = Prepared();
  static std::uint32_t pageable;
  Spin(kSpinMs, work.stream, work.buffer, 6);
  ASSERT_OK(cuMemcpyDtoHAsync(&pageable, work.buffer, 4, work.stream));
  Tell("cuMemcpyDtoHAsync to pageable memory",
       *static_cast<volatile std::uint32_t*>(&pageable) == 6u, true);
}

CONTRACT(ImplicitWaits, Allocation,
         "programming guide, implicit synchronization: of the device at most") {
  const InFlight work = Prepared();
  work.Begin();
  Allocate(8 * kMiB);
  Tell("cuMemAlloc", work.Word() == 1, false);
}

CONTRACT(ImplicitWaits, PinningMemory,
         "programming guide, implicit synchronization: of the device at most") {
  const InFlight work = Prepared();
  void* memory = nullptr;
  work.Begin();
  ASSERT_OK(cuMemHostAlloc(&memory, kMiB, 0));
  Tell("cuMemHostAlloc", work.Word() == 1, false);
}

CONTRACT(ImplicitWaits, FreeingPinnedMemory, "cuda.h:8823 cuMemFreeHost says nothing") {
  const InFlight work = Prepared();
  void* memory = nullptr;
  ASSERT_OK(cuMemHostAlloc(&memory, kMiB, 0));
  work.Begin();
  ASSERT_OK(cuMemFreeHost(memory));
  Tell("cuMemFreeHost", work.Word() == 1, true);
}

CONTRACT(ImplicitWaits, Unregistering, "cuda.h:9567 cuMemHostUnregister says nothing") {
  const InFlight work = Prepared();
  void* const memory =
      mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_OK(cuMemHostRegister(memory, kMiB, 0));
  work.Begin();
  ASSERT_OK(cuMemHostUnregister(memory));
  Tell("cuMemHostUnregister", work.Word() == 1, true);
}

CONTRACT(ImplicitWaits, FreeingManagedMemory, "cuda.h:8680 cuMemFree") {
  const InFlight work = Prepared();
  CUdeviceptr managed = 0;
  ASSERT_OK(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL));
  work.Begin();
  ASSERT_OK(cuMemFree(managed));
  EXPECT_EQ(work.Word(), 1u);
}

CONTRACT(ImplicitWaits, UnloadingAModule, "cuda.h:7476 cuModuleUnload says nothing") {
  const InFlight work = Prepared();
  const CUmodule module = LoadModule();
  work.Begin();
  ASSERT_OK(cuModuleUnload(module));
  Tell("cuModuleUnload", work.Word() == 1, true);
}

CONTRACT(ImplicitWaits, DestroyingAnArray, "cuda.h:12049 cuArrayDestroy says nothing") {
  const InFlight work = Prepared();
  const CUDA_ARRAY_DESCRIPTOR line{1024, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  ASSERT_OK(cuArrayCreate(&array, &line));
  work.Begin();
  ASSERT_OK(cuArrayDestroy(array));
  Tell("cuArrayDestroy", work.Word() == 1, true);
}

CONTRACT(ImplicitWaits, TrimmingAPool, "cuda.h:13345 cuMemPoolTrimTo says nothing") {
  const InFlight work = Prepared();
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  PooledMemory(work.stream);
  work.Begin();
  ASSERT_OK(cuMemPoolTrimTo(pool, 0));
  Tell("cuMemPoolTrimTo", work.Word() == 1, false);
}

CONTRACT(ImplicitWaits, DestroyingAPool, "cuda.h:13576 cuMemPoolDestroy: memory in use stays") {
  const InFlight work = Prepared();
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuMemPoolCreate(&pool, &properties));
  work.Begin();
  ASSERT_OK(cuMemPoolDestroy(pool));
  Tell("cuMemPoolDestroy", work.Word() == 1, false);
}

}  // namespace spillway::contract
