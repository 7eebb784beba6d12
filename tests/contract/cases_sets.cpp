// Memory sets of every width and shape.
#include <algorithm>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

std::vector<unsigned char> ReadBytes(CUdeviceptr source, std::size_t count) {
  std::vector<unsigned char> bytes(count);
  ASSERT_OK(cuMemcpyDtoH(bytes.data(), source, count));
  return bytes;
}

CUdeviceptr ZeroedBytes(std::size_t count) {
  const CUdeviceptr bytes = Allocate(count);
  ASSERT_OK(cuMemsetD8(bytes, 0, count));
  return bytes;
}

}  // namespace

CONTRACT(Set, SetsExactlyTheseBytes, "cuda.h:11278 cuMemsetD8") {
  UseDevice();
  const CUdeviceptr memory = ZeroedBytes(1000);
  ASSERT_OK(cuMemsetD8(memory + 101, 0x5A, 333));
  const auto bytes = ReadBytes(memory, 1000);
  EXPECT_EQ(int{bytes[100]}, 0);
  EXPECT_EQ(std::count(bytes.begin() + 101, bytes.begin() + 434, 0x5A), 333);
  EXPECT_EQ(int{bytes[434]}, 0);
}

CONTRACT(Set, CountsAreInElements, "cuda.h:11313 cuMemsetD16") {
  UseDevice();
  const CUdeviceptr memory = ZeroedBytes(4096);
  ASSERT_OK(cuMemsetD16(memory, 0x1234, 10));
  ASSERT_OK(cuMemsetD32(memory + 64, 0x89ABCDEF, 10));
  const auto bytes = ReadBytes(memory, 4096);
  EXPECT_EQ(int{bytes[18]}, 0x34);
  EXPECT_EQ(int{bytes[19]}, 0x12);
  EXPECT_EQ(int{bytes[20]}, 0);
  EXPECT_EQ(int{bytes[64 + 36]}, 0xEF);
  EXPECT_EQ(int{bytes[64 + 39]}, 0x89);
  EXPECT_EQ(int{bytes[64 + 40]}, 0);
}

CONTRACT(Set, AsyncFormsKeepStreamOrder, "cuda.h:11580 cuMemsetD32Async") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr memory = Allocate(kMiB);
  ASSERT_OK(cuMemsetD32Async(memory, 10, 1000, stream));
  Launch("add", 8, 128, stream, memory, std::uint32_t{5}, std::uint64_t{1000});
  ASSERT_OK(cuMemsetD8Async(memory, 0, 4, stream));
  ASSERT_OK(cuMemsetD16Async(memory + 4, 1, 2, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  const auto words = ReadWords(memory, 1000);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 0x00010001u);
  EXPECT_EQ(words[2], 15u);
  EXPECT_EQ(words[999], 15u);
}

CONTRACT(Set, RowsKeepTheGaps, "cuda.h:11388 cuMemsetD2D8") {
  UseDevice();
  const CUdeviceptr memory = ZeroedBytes(4096);
  ASSERT_OK(cuMemsetD2D8(memory, 64, 7, 10, 3));
  ASSERT_OK(cuMemsetD2D16(memory + 1024, 64, 0x0808, 10, 3));
  ASSERT_OK(cuMemsetD2D32Async(memory + 2048, 64, 0x09090909, 10, 3, nullptr));
  const auto bytes = ReadBytes(memory, 4096);
  EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 1024, 7), 30);
  EXPECT_EQ(int{bytes[128 + 9]}, 7);
  EXPECT_EQ(int{bytes[128 + 10]}, 0);
  EXPECT_EQ(std::count(bytes.begin() + 1024, bytes.begin() + 2048, 8), 60);
  EXPECT_EQ(std::count(bytes.begin() + 2048, bytes.end(), 9), 120);
}

CONTRACT(Set, MisalignedElementsAreInvalid, "cuda.h:11348 cuMemsetD32") {
  UseDevice();
  const CUdeviceptr memory = Allocate(4096);
  EXPECT_EQ(cuMemsetD16(memory + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemsetD32(memory + 4, 0, 1));
}

CONTRACT(Set, SetOfZeroElementsSucceeds, "cuda.h:11278 cuMemsetD8") {
  UseDevice();
  EXPECT_OK(cuMemsetD8(Allocate(4096), 1, 0));
}

CONTRACT(Set, SetPastTheEndIsRefused, "cuda.h:11278 cuMemsetD8") {
  UseDevice();
  const CUdeviceptr memory = Allocate(64 * kMiB);
  const CUresult result = cuMemsetD8(memory, 1, 80 * kMiB);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("set_past_the_end", result);
}

}  // namespace spillway::contract
