// cuMemAlloc, cuMemFree, cuMemAllocPitch, address ranges and memory info.
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

std::size_t FreeBytes() {
  std::size_t free_bytes = 0, total_bytes = 0;
  ASSERT_OK(cuMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

}  // namespace

CONTRACT(Allocation, ZeroBytesAreInvalid, "cuda.h:8609 cuMemAlloc") {
  UseDevice();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(nullptr, 256), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Allocation, AddressesAreAlignedTo256,
         "CUDA programming guide, device memory accesses: at least 256 bytes") {
  UseDevice();
  CUdeviceptr all_bits = 0;
  for (const std::size_t size_bytes :
       {std::size_t{1}, std::size_t{100}, std::size_t{4097}, kMiB + 1, 3 * kMiB})
    all_bits |= Allocate(size_bytes);
  EXPECT_EQ(all_bits % 256, CUdeviceptr{0});
  OBSERVE("aligned_to_512", all_bits % 512 == 0);
}

CONTRACT(Allocation, LiveAllocationsDoNotOverlap, "cuda.h:8609 cuMemAlloc") {
  UseDevice();
  std::vector<CUdeviceptr> words;
  for (std::uint32_t i = 0; i < 100; ++i) {
    words.push_back(Allocate(4 * (i + 1)));
    Fill(words.back(), i, i + 1);
  }
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(AllWordsAre(words[i], i + 1, i));
}

CONTRACT(Allocation, KeepsWhatWasWritten, "cuda.h:8609 cuMemAlloc") {
  UseDevice();
  const CUdeviceptr words = Allocate(8 * kMiB);
  Fill(words, 7, 2 * kMiB);
  Allocate(8 * kMiB);
  EXPECT_TRUE(AllWordsAre(words, 2 * kMiB, 7));
}

CONTRACT(Allocation, RangeOfAnInteriorPointerIsTheAllocation, "cuda.h:8742 cuMemGetAddressRange") {
  UseDevice();
  const CUdeviceptr address = Allocate(4 * kMiB);
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  ASSERT_OK(cuMemGetAddressRange(&base, &size_bytes, address + 3 * kMiB + 1));
  EXPECT_EQ(base, address);
  EXPECT_EQ(size_bytes, 4 * kMiB);
}

CONTRACT(Allocation, RangeOfASmallAllocationIsItsRequestedSize,
         "cuda.h:8742 cuMemGetAddressRange") {
  UseDevice();
  const CUdeviceptr address = Allocate(1000);
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  ASSERT_OK(cuMemGetAddressRange(&base, &size_bytes, address + 999));
  EXPECT_EQ(base, address);
  EXPECT_TRUE(size_bytes >= 1000);
  OBSERVE("range_of_1000_bytes", size_bytes);
}

CONTRACT(Allocation, RangeArgumentsAreOptional, "cuda.h:8742 cuMemGetAddressRange") {
  UseDevice();
  const CUdeviceptr address = Allocate(kMiB);
  CUdeviceptr base = 0;
  std::size_t size_bytes = 0;
  EXPECT_OK(cuMemGetAddressRange(&base, nullptr, address));
  EXPECT_EQ(base, address);
  EXPECT_OK(cuMemGetAddressRange(nullptr, &size_bytes, address));
  EXPECT_EQ(size_bytes, kMiB);
}

CONTRACT(Allocation, RangeOfForeignMemoryIsRefused, "cuda.h:8742 cuMemGetAddressRange") {
  UseDevice();
  int on_the_stack = 0;
  CUdeviceptr base = 0;
  const CUresult result =
      cuMemGetAddressRange(&base, nullptr, reinterpret_cast<CUdeviceptr>(&on_the_stack));
  EXPECT_TRUE(result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_FOUND);
  OBSERVE("range_of_host_stack", result);
}

CONTRACT(Allocation, FreeTakesOnlyTheStart, "cuda.h:8708 cuMemFree") {
  UseDevice();
  const CUdeviceptr address = Allocate(4 * kMiB);
  EXPECT_EQ(cuMemFree(address + 256), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree(address));
}

CONTRACT(Allocation, SecondFreeIsInvalid, "cuda.h:8708 cuMemFree") {
  UseDevice();
  const CUdeviceptr address = Allocate(64 * kMiB);
  EXPECT_OK(cuMemFree(address));
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Allocation, FreeOfNullIsObserved, "cuda.h:8708 cuMemFree says nothing of null") {
  UseDevice();
  OBSERVE("free_of_null", cuMemFree(0));
}

CONTRACT(Allocation, CopyFromFreedMemoryIsANonStickyError, "cuda.h:9709 cuMemcpyDtoH") {
  UseDevice();
  const CUdeviceptr address = Allocate(64 * kMiB);
  ASSERT_OK(cuMemFree(address));
  std::uint32_t word = 0;
  const CUresult result = cuMemcpyDtoH(&word, address, sizeof word);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("copy_from_freed", result);
  OBSERVE("next_call_after_it", cuCtxSynchronize());
}

CONTRACT(Allocation, KernelOnFreedMemoryIsObserved, "CUDA programming guide: undefined behaviour") {
  UseDevice();
  const CUdeviceptr address = Allocate(64 * kMiB);
  ASSERT_OK(cuMemFree(address));
  Fill(address, 1, 1);
  OBSERVE("kernel_on_freed", cuCtxSynchronize());
}

CONTRACT(Allocation, MoreThanTheDeviceIsOutOfMemory, "cuda.h:8609 cuMemAlloc") {
  const CUdevice device = UseDevice();
  std::size_t total_bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&total_bytes, device));
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 2 * total_bytes), CUDA_ERROR_OUT_OF_MEMORY);
  OBSERVE("largest_size_there_is", cuMemAlloc(&address, ~std::size_t{0}));
}

CONTRACT(Allocation, OutOfMemoryDoesNotStick, "cuda.h:8609 cuMemAlloc") {
  const CUdevice device = UseDevice();
  std::size_t total_bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&total_bytes, device));
  CUdeviceptr address = 0;
  EXPECT_TRUE(cuMemAlloc(&address, 2 * total_bytes) != CUDA_SUCCESS);
  EXPECT_OK(cuMemAlloc(&address, kMiB));
  Fill(address, 5, 10);
  EXPECT_TRUE(AllWordsAre(address, 10, 5));
}

CONTRACT_ALONE(Allocation, MemoryInfoFollowsAllocations, "cuda.h:8575 cuMemGetInfo") {
  UseDevice();
  const std::size_t before = FreeBytes();
  const CUdeviceptr address = Allocate(256 * kMiB);
  const std::size_t during = FreeBytes();
  EXPECT_TRUE(during + 256 * kMiB <= before);
  EXPECT_TRUE(during + 300 * kMiB >= before);
  ASSERT_OK(cuMemFree(address));
  EXPECT_TRUE(FreeBytes() + 4 * kMiB >= before);
}

CONTRACT(Allocation, MemoryInfoTotalIsTheDevice, "cuda.h:8575 cuMemGetInfo") {
  const CUdevice device = UseDevice();
  std::size_t free_bytes = 0, total_bytes = 0, device_bytes = 0;
  ASSERT_OK(cuMemGetInfo(&free_bytes, &total_bytes));
  ASSERT_OK(cuDeviceTotalMem(&device_bytes, device));
  EXPECT_TRUE(free_bytes <= total_bytes);
  EXPECT_EQ(total_bytes, device_bytes);
}

CONTRACT(Pitch, IsAtLeastTheWidthAndAligned, "cuda.h:8671 cuMemAllocPitch") {
  const CUdevice device = UseDevice();
  const auto alignment =
      static_cast<std::size_t>(Attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
  CUdeviceptr address = 0;
  std::size_t pitch_bytes = 0;
  ASSERT_OK(cuMemAllocPitch(&address, &pitch_bytes, 1001, 10, 4));
  EXPECT_TRUE(pitch_bytes >= 1001);
  EXPECT_EQ(pitch_bytes % alignment, std::size_t{0});
  OBSERVE("pitch_of_1001", pitch_bytes);
  std::size_t size_bytes = 0;
  ASSERT_OK(cuMemGetAddressRange(nullptr, &size_bytes, address));
  EXPECT_TRUE(size_bytes >= 9 * pitch_bytes + 1001);
  EXPECT_OK(cuMemFree(address));
}

CONTRACT(Pitch, ElementSizeIs4Or8Or16, "cuda.h:8671 cuMemAllocPitch") {
  UseDevice();
  CUdeviceptr address = 0;
  std::size_t pitch_bytes = 0;
  EXPECT_EQ(cuMemAllocPitch(&address, &pitch_bytes, 1024, 4, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemAllocPitch(&address, &pitch_bytes, 1024, 4, 16));
  OBSERVE("pitch_with_no_width", cuMemAllocPitch(&address, &pitch_bytes, 0, 4, 4));
}

}  // namespace spillway::contract
