// Pointer attributes, and errors that stick to a context.
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

template <typename T>
T Read(CUpointer_attribute attribute, CUdeviceptr pointer) {
  T value{};
  ASSERT_OK(cuPointerGetAttribute(&value, attribute, pointer));
  return value;
}

// No allocation lies here.
constexpr CUdeviceptr kNowhere = 0x10000;

}  // namespace

CONTRACT(Pointer, DeviceMemoryDescribesItself, "cuda.h:14357 cuPointerGetAttribute") {
  const CUdevice device = UseDevice();
  const CUdeviceptr base = Allocate(4 * kMiB), inside = base + 12345;
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  EXPECT_EQ(Read<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
            unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_TRUE(Read<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inside) == context);
  EXPECT_EQ(Read<CUdevice>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside), device);
  EXPECT_EQ(Read<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside), inside);
  EXPECT_EQ(Read<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside), base);
  EXPECT_EQ(Read<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside), 4 * kMiB);
  EXPECT_EQ(Read<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside), 0u);
  EXPECT_EQ(Read<int>(CU_POINTER_ATTRIBUTE_MAPPED, inside) & 0xFF, 1);
}

CONTRACT(Pointer, HostMemoryDescribesItself, "cuda.h:14357 cuPointerGetAttribute") {
  UseDevice();
  void* memory = nullptr;
  ASSERT_OK(cuMemAllocHost(&memory, kMiB));
  const auto pointer = reinterpret_cast<CUdeviceptr>(memory) + 64;
  EXPECT_EQ(Read<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer),
            unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_EQ(Read<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer), pointer);
  EXPECT_EQ(Read<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer), pointer);
}

CONTRACT(Pointer, BufferIdsAreUnique, "cuda.h:14357 cuPointerGetAttribute: BUFFER_ID") {
  UseDevice();
  const CUdeviceptr first = Allocate(4 * kMiB), second = Allocate(4 * kMiB);
  const auto first_id = Read<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
  EXPECT_TRUE(first_id != Read<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
  EXPECT_EQ(Read<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first + kMiB), first_id);
}

CONTRACT(Pointer, UnknownMemoryIsInvalidAloneAndNullInAList,
         "cuda.h:14896 cuPointerGetAttributes") {
  UseDevice();
  std::vector<char> ordinary(4096);
  const auto pointer = reinterpret_cast<CUdeviceptr>(ordinary.data());
  unsigned type = 99;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer),
            CUDA_ERROR_INVALID_VALUE);
  CUcontext context = reinterpret_cast<CUcontext>(1);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_CONTEXT};
  void* values[] = {&type, &context};
  EXPECT_OK(cuPointerGetAttributes(2, attributes, values, pointer));
  EXPECT_EQ(type, 0u);
  EXPECT_TRUE(context == nullptr);
}

CONTRACT(Pointer, ListAnswersSeveralAtOnce, "cuda.h:14896 cuPointerGetAttributes") {
  UseDevice();
  const CUdeviceptr base = Allocate(kMiB);
  unsigned type = 0;
  std::size_t size_bytes = 0;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&type, &size_bytes};
  EXPECT_OK(cuPointerGetAttributes(2, attributes, values, base + 8));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(size_bytes, kMiB);
}

CONTRACT(Pointer, FreedMemoryIsUnknown, "cuda.h:14357 cuPointerGetAttribute") {
  UseDevice();
  const CUdeviceptr base = Allocate(64 * kMiB);
  ASSERT_OK(cuMemFree(base));
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Pointer, SyncMemopsCanBeSet, "cuda.h:14846 cuPointerSetAttribute") {
  UseDevice();
  const CUdeviceptr base = Allocate(4 * kMiB);
  unsigned on = 1, read = 0;
  EXPECT_OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
  ASSERT_OK(cuPointerGetAttribute(&read, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
  EXPECT_EQ(read & 0xFF, 1u);
}

CONTRACT(Sticky, IllegalAddressEndsTheContext, "cuda.h:2837 CUDA_ERROR_ILLEGAL_ADDRESS") {
  UseDevice();
  const CUfunction fill = Kernel("fill");
  const CUdeviceptr good = Allocate(kMiB);
  const CUstream stream = MakeStream();
  Fill(kNowhere, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr address = 0;
  std::uint32_t word = 0;
  EXPECT_EQ(cuMemAlloc(&address, 256), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyDtoH(&word, good, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  address = good;
  std::uint64_t count = 1;
  void* parameters[] = {&address, &word, &count};
  EXPECT_EQ(LaunchRaw(fill, 1, 1, stream, parameters), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Sticky, CallsAfterAFaultAreObserved, "cuda.h:2837 CUDA_ERROR_ILLEGAL_ADDRESS") {
  const CUdevice device = UseDevice();
  const CUdeviceptr good = Allocate(kMiB);
  Fill(kNowhere, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext context = nullptr;
  std::size_t free_bytes = 0, total_bytes = 0;
  int value = 0;
  OBSERVE("get_current", cuCtxGetCurrent(&context));
  OBSERVE("memory_info", cuMemGetInfo(&free_bytes, &total_bytes));
  OBSERVE("device_attribute", cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  OBSERVE("free", cuMemFree(good));
  OBSERVE("primary_reset", cuDevicePrimaryCtxReset(device));
  CUdeviceptr address = 0;
  OBSERVE("allocate_after_reset", cuMemAlloc(&address, kMiB));
}

CONTRACT(Sticky, NullIsAnIllegalAddress, "cuda.h:2837 CUDA_ERROR_ILLEGAL_ADDRESS") {
  UseDevice();
  Fill(0, 1, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Sticky, ReadingNullFaultsLikeWriting, "cuda.h:2837 CUDA_ERROR_ILLEGAL_ADDRESS") {
  UseDevice();
  const CUdeviceptr out = Allocate(4);
  Launch("copy", 1, 1, nullptr, out, kNowhere, std::uint64_t{1});
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

CONTRACT(Sticky, RefusedArgumentsDoNotStick, "CUDA driver API, error handling") {
  UseDevice();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(kNowhere), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemAlloc(&address, 256));
}

}  // namespace spillway::contract
