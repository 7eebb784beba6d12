// Pinned host memory: allocated and registered.
#include <sys/mman.h>

#include <cstdlib>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

void* Pinned(std::size_t size_bytes, unsigned flags = 0) {
  void* memory = nullptr;
  ASSERT_OK(cuMemHostAlloc(&memory, size_bytes, flags));
  return memory;
}

void* Pageable(std::size_t size_bytes) {
  void* memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(memory != MAP_FAILED);
  return memory;
}

CUdeviceptr DeviceAddress(void* memory) {
  CUdeviceptr address = 0;
  ASSERT_OK(cuMemHostGetDevicePointer(&address, memory, 0));
  return address;
}

}  // namespace

CONTRACT(HostMemory, HostAndDeviceReadAndWriteAllocatedMemory, "cuda.h:8906 cuMemHostAlloc") {
  UseDevice();
  auto* words = static_cast<std::uint32_t*>(Pinned(4 * kMiB, CU_MEMHOSTALLOC_DEVICEMAP));
  words[0] = 3;
  const CUdeviceptr address = DeviceAddress(words);
  Launch("add", 1, 32, nullptr, address, std::uint32_t{4}, std::uint64_t{1});
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(words[0], 7u);
  EXPECT_OK(cuMemFreeHost(words));
}

CONTRACT(HostMemory, HasOneAddressForHostAndDevice,
         "CUDA programming guide, unified virtual addressing") {
  UseDevice();
  void* by_host_alloc = Pinned(kMiB);
  EXPECT_EQ(DeviceAddress(by_host_alloc), reinterpret_cast<CUdeviceptr>(by_host_alloc));
  void* by_alloc_host = nullptr;
  ASSERT_OK(cuMemAllocHost(&by_alloc_host, kMiB));
  EXPECT_EQ(DeviceAddress(by_alloc_host), reinterpret_cast<CUdeviceptr>(by_alloc_host));
}

CONTRACT(HostMemory, FlagsCanBeReadBack, "cuda.h:8986 cuMemHostGetFlags") {
  UseDevice();
  unsigned flags = 0;
  ASSERT_OK(cuMemHostGetFlags(&flags,
                              Pinned(kMiB, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)));
  EXPECT_TRUE((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
  EXPECT_TRUE((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
}

CONTRACT(HostMemory, BadArgumentsAreInvalid, "cuda.h:8906 cuMemHostAlloc") {
  UseDevice();
  void* memory = nullptr;
  EXPECT_EQ(cuMemHostAlloc(nullptr, kMiB, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemHostAlloc(&memory, kMiB, 0x80), CUDA_ERROR_INVALID_VALUE);
  OBSERVE("zero_bytes", cuMemHostAlloc(&memory, 0, 0));
}

CONTRACT(HostMemory, SecondFreeIsInvalid, "cuda.h:8823 cuMemFreeHost") {
  UseDevice();
  void* memory = Pinned(4 * kMiB);
  EXPECT_OK(cuMemFreeHost(memory));
  EXPECT_EQ(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(HostMemory, HostAndDeviceReadAndWriteRegisteredMemory, "cuda.h:9541 cuMemHostRegister") {
  UseDevice();
  auto* words = static_cast<std::uint32_t*>(Pageable(kMiB));
  words[5] = 10;
  ASSERT_OK(cuMemHostRegister(words, kMiB, CU_MEMHOSTREGISTER_DEVICEMAP));
  const CUdeviceptr address = DeviceAddress(words) + 5 * sizeof *words;
  Launch("add", 1, 32, nullptr, address, std::uint32_t{1}, std::uint64_t{1});
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(words[5], 11u);
  EXPECT_OK(cuMemHostUnregister(words));
  words[5] = 12;  // still ordinary memory
  EXPECT_EQ(words[5], 12u);
}

CONTRACT(HostMemory, RegisteringTwiceIsAnError, "cuda.h:9541 cuMemHostRegister") {
  UseDevice();
  void* memory = Pageable(kMiB);
  ASSERT_OK(cuMemHostRegister(memory, kMiB, 0));
  EXPECT_EQ(cuMemHostRegister(memory, kMiB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_OK(cuMemHostUnregister(memory));
  EXPECT_EQ(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CONTRACT(HostMemory, RegisteringUnalignedMemoryWorks, "cuda.h:9541 cuMemHostRegister") {
  UseDevice();
  char* memory = static_cast<char*>(Pageable(kMiB)) + 100;
  OBSERVE("register_unaligned", cuMemHostRegister(memory, 5000, 0));
  OBSERVE("unregister_unaligned", cuMemHostUnregister(memory));
}

CONTRACT(HostMemory, OrdinaryMemoryHasNoDevicePointer, "cuda.h:8959 cuMemHostGetDevicePointer") {
  const CUdevice device = UseDevice();
  CUdeviceptr address = 0;
  const CUresult result = cuMemHostGetDevicePointer(&address, Pageable(kMiB), 0);
  OBSERVE("device_pointer_of_ordinary_memory", result);
  OBSERVE("pageable_memory_access", Attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
}

CONTRACT_ALONE(HostMemory, TakesNoDeviceMemory, "cuda.h:8906 cuMemHostAlloc") {
  UseDevice();
  std::size_t before = 0, after = 0, total = 0;
  Pinned(kMiB);
  ASSERT_OK(cuMemGetInfo(&before, &total));
  Pinned(256 * kMiB);
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_TRUE(after + 64 * kMiB >= before);
}

}  // namespace spillway::contract
