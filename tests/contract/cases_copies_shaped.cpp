// Two- and three-dimensional copies: pitches, offsets, heights.
#include <algorithm>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

// A host image of `rows` x `pitch` bytes whose byte at (row, column) is row * 16 + column.
std::vector<unsigned char> Image(std::size_t rows, std::size_t pitch) {
  std::vector<unsigned char> bytes(rows * pitch);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(i / pitch * 16 + i % pitch);
  return bytes;
}

CUDA_MEMCPY2D HostToDevice(const void* from, std::size_t from_pitch, CUdeviceptr to,
                           std::size_t to_pitch, std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

CUDA_MEMCPY2D DeviceToHost(CUdeviceptr from, std::size_t from_pitch, void* to, std::size_t to_pitch,
                           std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

struct Pitched {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
};

Pitched AllocatePitched(std::size_t width, std::size_t height) {
  Pitched memory;
  ASSERT_OK(cuMemAllocPitch(&memory.address, &memory.pitch, width, height, 4));
  return memory;
}

}  // namespace

CONTRACT(Copy2D, PitchesMayDiffer, "cuda.h:10097 cuMemcpy2D") {
  UseDevice();
  const auto image = Image(6, 10);
  const Pitched memory = AllocatePitched(10, 6);
  const CUDA_MEMCPY2D in = HostToDevice(image.data(), 10, memory.address, memory.pitch, 10, 6);
  ASSERT_OK(cuMemcpy2D(&in));
  std::vector<unsigned char> back(6 * 12, 0xEE);
  const CUDA_MEMCPY2D out = DeviceToHost(memory.address, memory.pitch, back.data(), 12, 10, 6);
  ASSERT_OK(cuMemcpy2D(&out));
  for (std::size_t row = 0; row < 6; ++row) {
    EXPECT_EQ(int{back[row * 12]}, int(row * 16));
    EXPECT_EQ(int{back[row * 12 + 9]}, int(row * 16 + 9));
    EXPECT_EQ(int{back[row * 12 + 10]}, 0xEE);  // the gap between rows is unchanged
  }
}

CONTRACT(Copy2D, OffsetsSelectAWindow, "cuda.h:10097 cuMemcpy2D: srcXInBytes, srcY") {
  UseDevice();
  const auto image = Image(8, 16);
  const Pitched memory = AllocatePitched(16, 8);
  ASSERT_OK(cuMemsetD2D8(memory.address, memory.pitch, 0, 16, 8));
  CUDA_MEMCPY2D in = HostToDevice(image.data(), 16, memory.address, memory.pitch, 4, 3);
  in.srcXInBytes = 5;
  in.srcY = 2;
  in.dstXInBytes = 7;
  in.dstY = 1;
  ASSERT_OK(cuMemcpy2D(&in));
  std::vector<unsigned char> back(8 * 16);
  const CUDA_MEMCPY2D out = DeviceToHost(memory.address, memory.pitch, back.data(), 16, 16, 8);
  ASSERT_OK(cuMemcpy2D(&out));
  EXPECT_EQ(int{back[1 * 16 + 7]}, 2 * 16 + 5);
  EXPECT_EQ(int{back[3 * 16 + 10]}, 4 * 16 + 8);
  EXPECT_EQ(int{back[1 * 16 + 6]}, 0);
  EXPECT_EQ(int{back[3 * 16 + 11]}, 0);
  EXPECT_EQ(int{back[4 * 16 + 7]}, 0);
}

CONTRACT(Copy2D, DeviceToDeviceUnalignedAndAsync, "cuda.h:10259 cuMemcpy2DUnaligned") {
  UseDevice();
  const CUstream stream = MakeStream();
  const auto image = Image(5, 9);
  const CUdeviceptr first = Allocate(kMiB), second = Allocate(kMiB);
  const CUDA_MEMCPY2D in = HostToDevice(image.data(), 9, first, 13, 9, 5);
  ASSERT_OK(cuMemcpy2DUnaligned(&in));
  CUDA_MEMCPY2D across = HostToDevice(nullptr, 13, second, 17, 9, 5);
  across.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  across.srcDevice = first;
  ASSERT_OK(cuMemcpy2DAsync(&across, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  std::vector<unsigned char> back(5 * 9);
  const CUDA_MEMCPY2D out = DeviceToHost(second, 17, back.data(), 9, 9, 5);
  ASSERT_OK(cuMemcpy2DUnaligned(&out));
  EXPECT_TRUE(back == image);
}

CONTRACT(Copy2D, UnifiedTypeTakesAnyAddress, "cuda.h:10097 cuMemcpy2D: CU_MEMORYTYPE_UNIFIED") {
  UseDevice();
  auto image = Image(4, 8);
  const CUdeviceptr memory = Allocate(4096);
  CUDA_MEMCPY2D in = HostToDevice(nullptr, 8, memory, 512, 8, 4);
  in.srcMemoryType = in.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  in.srcDevice = reinterpret_cast<CUdeviceptr>(image.data());
  ASSERT_OK(cuMemcpy2D(&in));
  std::vector<unsigned char> back(4 * 8);
  const CUDA_MEMCPY2D out = DeviceToHost(memory, 512, back.data(), 8, 8, 4);
  ASSERT_OK(cuMemcpy2D(&out));
  EXPECT_TRUE(back == image);
}

CONTRACT(Copy2D, WiderThanThePitchIsInvalid, "cuda.h:10097 cuMemcpy2D") {
  UseDevice();
  const auto image = Image(4, 64);
  const CUDA_MEMCPY2D in = HostToDevice(image.data(), 16, Allocate(4096), 64, 32, 4);
  EXPECT_EQ(cuMemcpy2D(&in), CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Copy2D, CopyOfZeroRowsSucceeds, "cuda.h:10097 cuMemcpy2D") {
  UseDevice();
  const auto image = Image(1, 16);
  const CUDA_MEMCPY2D in = HostToDevice(image.data(), 16, Allocate(4096), 16, 16, 0);
  EXPECT_OK(cuMemcpy2D(&in));
}

CONTRACT(Copy3D, SlicesHaveAHeight, "cuda.h:10428 cuMemcpy3D") {
  UseDevice();
  constexpr std::size_t kWidth = 6, kHeight = 4, kDepth = 3;
  std::vector<unsigned char> volume(kWidth * kHeight * kDepth), back(volume.size());
  for (std::size_t i = 0; i < volume.size(); ++i) volume[i] = static_cast<unsigned char>(i);
  const CUdeviceptr memory = Allocate(kMiB);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = volume.data();
  copy.srcPitch = kWidth;
  copy.srcHeight = kHeight;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = 32;
  copy.dstHeight = 7;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  copy.Depth = kDepth;
  ASSERT_OK(cuMemcpy3D(&copy));
  unsigned char last = 0;
  ASSERT_OK(cuMemcpyDtoH(&last, memory + 2 * 7 * 32 + 3 * 32 + 5, 1));
  EXPECT_EQ(int{last}, 71);
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = memory;
  out.srcPitch = 32;
  out.srcHeight = 7;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back.data();
  out.dstPitch = kWidth;
  out.dstHeight = kHeight;
  out.WidthInBytes = kWidth;
  out.Height = kHeight;
  out.Depth = kDepth;
  ASSERT_OK(cuMemcpy3DAsync(&out, nullptr));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_TRUE(back == volume);
}

CONTRACT(Copy3D, OffsetsSelectABox, "cuda.h:10428 cuMemcpy3D: dstZ, dstY, dstXInBytes") {
  UseDevice();
  const unsigned char one = 0xAB;
  const CUdeviceptr memory = Allocate(4096);
  ASSERT_OK(cuMemsetD8(memory, 0, 4096));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = &one;
  copy.srcPitch = copy.srcHeight = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = 16;
  copy.dstHeight = 8;
  copy.dstXInBytes = 3;
  copy.dstY = 2;
  copy.dstZ = 4;
  copy.WidthInBytes = copy.Height = copy.Depth = 1;
  ASSERT_OK(cuMemcpy3D(&copy));
  std::vector<unsigned char> bytes(4096);
  ASSERT_OK(cuMemcpyDtoH(bytes.data(), memory, 4096));
  EXPECT_EQ(int{bytes[(4 * 8 + 2) * 16 + 3]}, 0xAB);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 4095);
}

}  // namespace spillway::contract
