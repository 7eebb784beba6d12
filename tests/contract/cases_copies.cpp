// Linear copies in every direction and form.
#include <numeric>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

constexpr std::size_t kCount = 300'000;  // words; deliberately not a round number
constexpr std::size_t kBytes = kCount * 4;

std::vector<std::uint32_t> Ramp(std::uint32_t first, std::size_t count = kCount) {
  std::vector<std::uint32_t> words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

CUdeviceptr HostAddress(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

CONTRACT(Copy, HostToDeviceAndBack, "cuda.h:9673 cuMemcpyHtoD") {
  UseDevice();
  const CUdeviceptr words = Allocate(kBytes);
  const auto ramp = Ramp(5);
  ASSERT_OK(cuMemcpyHtoD(words, ramp.data(), kBytes));
  std::vector<std::uint32_t> back(kCount);
  ASSERT_OK(cuMemcpyDtoH(back.data(), words, kBytes));
  EXPECT_TRUE(back == ramp);
}

CONTRACT(Copy, SourceIsReusableWhenTheSynchronousCopyReturns,
         "CUDA driver API, API synchronization behavior") {
  UseDevice();
  const CUdeviceptr words = Allocate(kBytes);
  auto ramp = Ramp(5);
  ASSERT_OK(cuMemcpyHtoD(words, ramp.data(), kBytes));
  ramp.assign(kCount, 0);
  EXPECT_TRUE(ReadWords(words, kCount) == Ramp(5));
}

CONTRACT(Copy, DeviceToDevice, "cuda.h:9745 cuMemcpyDtoD") {
  UseDevice();
  const CUdeviceptr from = Allocate(kBytes), to = Allocate(kBytes);
  WriteWords(from, Ramp(9));
  ASSERT_OK(cuMemcpyDtoD(to, from, kBytes));
  EXPECT_TRUE(ReadWords(to, kCount) == Ramp(9));
}

CONTRACT(Copy, CopyOfASubRangeKeepsTheRest, "cuda.h:9745 cuMemcpyDtoD") {
  UseDevice();
  const CUdeviceptr from = Allocate(kBytes), to = Allocate(kBytes);
  Fill(from, 1, kCount);
  Fill(to, 2, kCount);
  ASSERT_OK(cuMemcpyDtoD(to + 400, from + 1200, 800));
  EXPECT_TRUE(AllWordsAre(to, 100, 2));
  EXPECT_TRUE(AllWordsAre(to + 400, 200, 1));
  EXPECT_TRUE(AllWordsAre(to + 1200, kCount - 300, 2));
}

CONTRACT(Copy, DirectionFollowsFromTheAddresses, "cuda.h:9607 cuMemcpy") {
  UseDevice();
  const CUdeviceptr first = Allocate(kBytes), second = Allocate(kBytes);
  const auto ramp = Ramp(3);
  std::vector<std::uint32_t> back(kCount), again(kCount);
  ASSERT_OK(cuMemcpy(first, HostAddress(ramp.data()), kBytes));
  ASSERT_OK(cuMemcpy(second, first, kBytes));
  ASSERT_OK(cuMemcpy(HostAddress(back.data()), second, kBytes));
  ASSERT_OK(cuMemcpy(HostAddress(again.data()), HostAddress(back.data()), kBytes));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(again == ramp);
}

CONTRACT(Copy, AsyncFormsKeepStreamOrder, "cuda.h:10571 cuMemcpyHtoDAsync") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr first = Allocate(kBytes), second = Allocate(kBytes);
  std::uint32_t* words = nullptr;
  ASSERT_OK(cuMemAllocHost(reinterpret_cast<void**>(&words), kBytes));
  std::uint32_t* back = nullptr;
  ASSERT_OK(cuMemAllocHost(reinterpret_cast<void**>(&back), kBytes));
  std::iota(words, words + kCount, 100u);
  ASSERT_OK(cuMemcpyHtoDAsync(first, words, kBytes, stream));
  Launch("add", 64, 256, stream, first, std::uint32_t{1}, std::uint64_t{kCount});
  ASSERT_OK(cuMemcpyDtoDAsync(second, first, kBytes, stream));
  Launch("add", 64, 256, stream, second, std::uint32_t{1}, std::uint64_t{kCount});
  ASSERT_OK(cuMemcpyDtoHAsync(back, second, kBytes, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  bool equal = true;
  for (std::uint32_t i = 0; i < kCount; ++i) equal = equal && back[i] == 102 + i;
  EXPECT_TRUE(equal);
}

CONTRACT(Copy, AsyncUnifiedForm, "cuda.h:10497 cuMemcpyAsync") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(kBytes);
  const auto ramp = Ramp(8);
  std::vector<std::uint32_t> back(kCount);
  ASSERT_OK(cuMemcpyAsync(words, HostAddress(ramp.data()), kBytes, stream));
  ASSERT_OK(cuMemcpyAsync(HostAddress(back.data()), words, kBytes, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(back == ramp);
}

CONTRACT(Copy, PeerFormsWorkWithinOneContext, "cuda.h:9637 cuMemcpyPeer") {
  UseDevice();
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  const CUdeviceptr from = Allocate(kBytes), to = Allocate(kBytes);
  WriteWords(from, Ramp(2));
  ASSERT_OK(cuMemcpyPeer(to, context, from, context, kBytes));
  EXPECT_TRUE(ReadWords(to, kCount) == Ramp(2));
  ASSERT_OK(cuMemsetD8(to, 0, kBytes));
  ASSERT_OK(cuMemcpyPeerAsync(to, context, from, context, kBytes, nullptr));
  EXPECT_TRUE(ReadWords(to, kCount) == Ramp(2));
}

CONTRACT(Copy, CopyOfZeroBytesSucceeds, "cuda.h:9673 cuMemcpyHtoD") {
  UseDevice();
  const CUdeviceptr words = Allocate(256);
  std::uint32_t word = 1;
  EXPECT_OK(cuMemcpyHtoD(words, &word, 0));
  EXPECT_OK(cuMemcpyDtoH(&word, words, 0));
  EXPECT_OK(cuMemcpyDtoD(words, words + 128, 0));
  EXPECT_EQ(word, 1u);
}

CONTRACT(Copy, CopyPastTheEndIsANonStickyError, "cuda.h:9709 cuMemcpyDtoH") {
  UseDevice();
  const CUdeviceptr words = Allocate(64 * kMiB);
  std::vector<std::uint32_t> target(20 * kMiB);
  const CUresult result = cuMemcpyDtoH(target.data(), words, 80 * kMiB);
  EXPECT_TRUE(result != CUDA_SUCCESS);
  OBSERVE("copy_past_the_end", result);
  EXPECT_OK(cuCtxSynchronize());
}

CONTRACT(Copy, PerThreadVariantsWork, "cuda.h:9673 cuMemcpyHtoD; cuMemcpyHtoD_v2_ptds") {
  UseDevice();
  using CopyIn = CUresult (*)(CUdeviceptr, const void*, std::size_t);
  using CopyOut = CUresult (*)(void*, CUdeviceptr, std::size_t);
  void *in = nullptr, *out = nullptr;
  ASSERT_OK(cuGetProcAddress("cuMemcpyHtoD", &in, 7000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  ASSERT_OK(cuGetProcAddress("cuMemcpyDtoH", &out, 7000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  ASSERT_TRUE(in && out);
  const CUdeviceptr words = Allocate(kBytes);
  const auto ramp = Ramp(6);
  std::vector<std::uint32_t> back(kCount);
  ASSERT_OK(reinterpret_cast<CopyIn>(in)(words, ramp.data(), kBytes));
  ASSERT_OK(reinterpret_cast<CopyOut>(out)(back.data(), words, kBytes));
  EXPECT_TRUE(back == ramp);
}

CONTRACT(Copy, BatchMakesAllItsCopies, "cuda.h:11176 cuMemcpyBatchAsync") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr from = Allocate(kMiB), to = Allocate(kMiB);
  WriteWords(from, Ramp(0, kMiB / 4));
  ASSERT_OK(cuCtxSynchronize());
  CUdeviceptr targets[] = {to, to + 4096}, sources[] = {from + 4096, from};
  std::size_t sizes[] = {4096, 8192}, first_of_attributes[] = {0};
  CUmemcpyAttributes attributes[1]{};
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  ASSERT_OK(
      cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, first_of_attributes, 1, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(ReadWords(to, 1024) == Ramp(1024, 1024));
  EXPECT_TRUE(ReadWords(to + 4096, 2048) == Ramp(0, 2048));
  OBSERVE("batch_on_the_legacy_stream", cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes,
                                                           first_of_attributes, 1, nullptr));
}

}  // namespace spillway::contract
