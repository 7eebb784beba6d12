// Several devices with memory and contexts of their own, and their access to each other's memory.
#include "tests/contract/vmm_device.h"

namespace spillway::contract {
namespace {

// The primary contexts of devices 0 and 1; the first is current.
struct Pair {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
};

Pair UseTwoDevices() {
  InitDevice();
  int count = 0;
  ASSERT_OK(cuDeviceGetCount(&count));
  SKIP_UNLESS(count >= 2, "one device");
  Pair pair;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&pair.first, 0));
  ASSERT_OK(cuDevicePrimaryCtxRetain(&pair.second, 1));
  ASSERT_OK(cuCtxSetCurrent(pair.first));
  return pair;
}

Pair UsePeers() {
  const Pair pair = UseTwoDevices();
  int forth = 0, back = 0;
  ASSERT_OK(cuDeviceCanAccessPeer(&forth, 0, 1));
  ASSERT_OK(cuDeviceCanAccessPeer(&back, 1, 0));
  SKIP_UNLESS(forth != 0 && back != 0, "the devices are no peers");
  return pair;
}

CUdeviceptr AllocateIn(CUcontext context, std::size_t size_bytes) {
  ASSERT_OK(cuCtxPushCurrent(context));
  const CUdeviceptr address = Allocate(size_bytes);
  CUcontext popped = nullptr;
  ASSERT_OK(cuCtxPopCurrent(&popped));
  return address;
}

// Kernels belong to the context that loaded them; `Fill` uses the first one's.
void FillIn(CUcontext context, CUdeviceptr words, std::uint32_t value, std::uint64_t count) {
  ASSERT_OK(cuCtxPushCurrent(context));
  CUfunction kernel = nullptr;
  ASSERT_OK(cuModuleGetFunction(&kernel, LoadModule(), "fill"));
  void* arguments[] = {&words, &value, &count};
  ASSERT_OK(LaunchRaw(kernel, 4, 256, nullptr, arguments));
  ASSERT_OK(cuCtxSynchronize());
  CUcontext popped = nullptr;
  ASSERT_OK(cuCtxPopCurrent(&popped));
}

}  // namespace

CONTRACT(Devices, ContextReportsItsDevice, "cuda.h cuCtxGetDevice") {
  const Pair pair = UseTwoDevices();
  CUdevice device = -1;
  EXPECT_OK(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 0);
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  EXPECT_OK(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
}

CONTRACT_ALONE(Devices, EachHasItsOwnMemory, "cuda.h cuMemGetInfo: the current context's device") {
  const Pair pair = UseTwoDevices();
  std::size_t first = 0, first_after = 0, second = 0, second_after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&first, &total));
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  ASSERT_OK(cuMemGetInfo(&second, &total));
  const CUdeviceptr there = Allocate(256 * kMiB);
  ASSERT_OK(cuMemGetInfo(&second_after, &total));
  EXPECT_TRUE(second_after + 256 * kMiB <= second);
  ASSERT_OK(cuCtxSetCurrent(pair.first));
  ASSERT_OK(cuMemGetInfo(&first_after, &total));
  EXPECT_TRUE(first_after + 32 * kMiB >= first);
  int ordinal = -1;
  EXPECT_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
  EXPECT_EQ(ordinal, 1);
}

CONTRACT(Devices, DevicesAreDistinguishable, "cuda.h cuDeviceGetUuid, cuDeviceGetPCIBusId") {
  UseTwoDevices();
  CUuuid first{}, second{};
  EXPECT_OK(cuDeviceGetUuid(&first, 0));
  EXPECT_OK(cuDeviceGetUuid(&second, 1));
  EXPECT_TRUE(std::string(first.bytes, sizeof first.bytes) !=
              std::string(second.bytes, sizeof second.bytes));
  char bus[32] = {};
  CUdevice found = -1;
  EXPECT_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
  EXPECT_OK(cuDeviceGetByPCIBusId(&found, bus));
  EXPECT_EQ(found, 1);
}

CONTRACT(Devices, LaunchIntoAnotherDevicesStreamIsRefused,
         "programming guide, stream and event behavior") {
  const Pair pair = UseTwoDevices();
  const CUdeviceptr words = Allocate(kMiB);
  CUfunction kernel = Kernel("fill");
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  const CUstream elsewhere = MakeStream();
  ASSERT_OK(cuCtxSetCurrent(pair.first));
  std::uint32_t value = 1;
  std::uint64_t count = 1;
  void* arguments[] = {const_cast<CUdeviceptr*>(&words), &value, &count};
  const CUresult result = LaunchRaw(kernel, 1, 32, elsewhere, arguments);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("launch_into_another_devices_stream", result);
}

CONTRACT(Devices, StreamWaitsForAnotherDevicesEvent,
         "programming guide, stream and event behavior") {
  const Pair pair = UseTwoDevices();
  const CUdeviceptr words = Allocate(kMiB);
  const CUstream here = MakeStream();
  ASSERT_OK(cuMemsetD32Async(words, 7, kMiB / 4, here));
  const CUevent event = MakeEvent();
  ASSERT_OK(cuEventRecord(event, here));
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  const CUdeviceptr copy = Allocate(kMiB);
  const CUstream there = MakeStream();
  EXPECT_OK(cuStreamWaitEvent(there, event, 0));
  EXPECT_OK(cuMemcpyPeerAsync(copy, pair.second, words, pair.first, kMiB, there));
  EXPECT_OK(cuStreamSynchronize(there));
  EXPECT_TRUE(AllWordsAre(copy, kMiB / 4, 7));
}

CONTRACT(Peers, CopiesNeedNoAccess, "cuda.h:9637 cuMemcpyPeer") {
  const Pair pair = UseTwoDevices();
  const CUdeviceptr here = Allocate(kMiB);
  const CUdeviceptr there = AllocateIn(pair.second, kMiB);
  ASSERT_OK(cuMemsetD32(here, 5, kMiB / 4));
  EXPECT_OK(cuMemcpyPeer(there, pair.second, here, pair.first, kMiB));
  EXPECT_TRUE(AllWordsAre(there, kMiB / 4, 5));
  ASSERT_OK(cuMemsetD32(there, 6, kMiB / 4));
  EXPECT_OK(cuMemcpy(here, there, kMiB));
  EXPECT_TRUE(AllWordsAre(here, kMiB / 4, 6));
}

CONTRACT(Peers, KernelsNeedAccess, "cuda.h:23895 cuCtxEnablePeerAccess") {
  const Pair pair = UsePeers();
  const CUdeviceptr there = AllocateIn(pair.second, 4 * kMiB);
  Fill(there, 9, kMiB);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Peers, EnabledContextReachesEarlierAndLaterAllocations,
         "cuda.h:23895 cuCtxEnablePeerAccess") {
  const Pair pair = UsePeers();
  const CUdeviceptr before = AllocateIn(pair.second, 4 * kMiB);
  ASSERT_OK(cuCtxEnablePeerAccess(pair.second, 0));
  const CUdeviceptr after = AllocateIn(pair.second, 4 * kMiB);
  Fill(before, 11, kMiB);
  Fill(after, 12, kMiB);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(before, kMiB, 11));
  EXPECT_TRUE(AllWordsAre(after, kMiB, 12));
}

CONTRACT(Peers, AccessIsOneWay, "cuda.h:23895 cuCtxEnablePeerAccess: unidirectional") {
  const Pair pair = UsePeers();
  const CUdeviceptr here = Allocate(4 * kMiB);
  ASSERT_OK(cuCtxEnablePeerAccess(pair.second, 0));
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  Fill(here, 3, kMiB);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Peers, DisabledAccessEnds, "cuda.h:23922 cuCtxDisablePeerAccess") {
  const Pair pair = UsePeers();
  const CUdeviceptr there = AllocateIn(pair.second, 4 * kMiB);
  ASSERT_OK(cuCtxEnablePeerAccess(pair.second, 0));
  Fill(there, 1, kMiB);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuCtxDisablePeerAccess(pair.second));
  FillIn(pair.second, there, 2, kMiB);  // its own device still reaches it
  Fill(there, 3, kMiB);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Peers, RefusedEnablingGivesItsReason,
         "cuda.h:23895 cuCtxEnablePeerAccess: return values") {
  const Pair pair = UsePeers();
  EXPECT_EQ(cuCtxEnablePeerAccess(pair.second, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxEnablePeerAccess(pair.first, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxDisablePeerAccess(pair.second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_OK(cuCtxEnablePeerAccess(pair.second, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(pair.second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_OK(cuCtxDisablePeerAccess(pair.second));
  EXPECT_EQ(cuCtxDisablePeerAccess(pair.second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

CONTRACT(Peers, DeviceIsNoPeerOfItself,
         "cuda.h:23842 cuDeviceCanAccessPeer; cuDeviceGetP2PAttribute") {
  const CUdevice device = InitDevice();
  int value = 99;
  EXPECT_EQ(
      cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device),
      CUDA_ERROR_INVALID_DEVICE);
  EXPECT_OK(cuDeviceCanAccessPeer(&value, device, device));
  EXPECT_EQ(value, 0);
}

CONTRACT(Peers, AttributesAgreeWithCanAccess, "cuda.h cuDeviceGetP2PAttribute") {
  UseTwoDevices();
  int can = 0, supported = 0;
  ASSERT_OK(cuDeviceCanAccessPeer(&can, 0, 1));
  ASSERT_OK(cuDeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(supported, can);
  EXPECT_EQ(cuDeviceGetP2PAttribute(&supported, static_cast<CUdevice_P2PAttribute>(99), 0, 1),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Peers, VirtualMemoryNamesItsDevices,
         "reference/cuda.md 1.6; cuda.h:13116 cuMemSetAccess") {
  const Pair pair = UsePeers();
  SKIP_UNLESS(Attribute(1, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), "no VMM");
  const std::size_t step = HandleBytes();
  const CUdeviceptr range = MappedRange(1);  // on device 0, for device 0
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  unsigned long long flags = 99;
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, range));
  EXPECT_EQ(flags, 0ull);
  EXPECT_OK(cuMemSetAccess(range, step, &access, 1));
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, range));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  Fill(range, 21, step / 4);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(range, step / 4, 21));
}

CONTRACT(Peers, EnablingDoesNotCoverVirtualMemory, "reference/cuda.md 1.6") {
  const Pair pair = UsePeers();
  SKIP_UNLESS(Attribute(0, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), "no VMM");
  const CUdeviceptr range = MappedRange(1);
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  ASSERT_OK(cuCtxEnablePeerAccess(pair.first, 0));
  Fill(range, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Peers, PoolsNameTheirDevices, "cuda.h cuMemPoolSetAccess") {
  const Pair pair = UsePeers();
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, 1));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_OK(cuMemPoolSetAccess(pool, &access, 1));
  ASSERT_OK(cuCtxSetCurrent(pair.second));
  CUdeviceptr there = 0;
  const CUstream stream = MakeStream();
  ASSERT_OK(cuMemAllocAsync(&there, 4 * kMiB, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  int ordinal = -1;
  EXPECT_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
  EXPECT_EQ(ordinal, 1);
  ASSERT_OK(cuCtxSetCurrent(pair.first));
  Fill(there, 31, kMiB);
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(there, kMiB, 31));
}

}  // namespace spillway::contract
