// Launches with stored parameters, and one launch on several devices.
#define CUDA_ENABLE_DEPRECATED
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

// fill(out, value, count) of contract_kernels.cu, for `count` words.
CUfunction StoredFill(CUdeviceptr words, std::uint32_t value, std::uint64_t count) {
  const CUfunction fill = Kernel("fill");
  ASSERT_OK(cuFuncSetBlockShape(fill, 64, 1, 1));
  ASSERT_OK(cuParamSetv(fill, 0, &words, sizeof words));
  ASSERT_OK(cuParamSeti(fill, 8, value));
  ASSERT_OK(cuParamSetv(fill, 16, &count, sizeof count));
  ASSERT_OK(cuParamSetSize(fill, 24));
  return fill;
}

}  // namespace

CONTRACT(StoredLaunch, GridUsesTheStoredParameters, "cuda.h:18450 cuLaunchGrid") {
  UseDevice();
  const CUdeviceptr words = Allocate(4 * 1000);
  ASSERT_OK(cuLaunchGrid(StoredFill(words, 21, 1000), 2, 3));
  EXPECT_TRUE(AllWordsAre(words, 1000, 21));
}

CONTRACT(StoredLaunch, StoredParametersStayUntilReplaced, "cuda.h:18512 cuLaunchGridAsync") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr first = Allocate(4 * 1000), second = Allocate(4 * 1000);
  const CUfunction fill = StoredFill(first, 22, 1000);
  ASSERT_OK(cuLaunchGridAsync(fill, 1, 1, stream));
  CUdeviceptr other = second;
  ASSERT_OK(cuParamSetv(fill, 0, &other, sizeof other));
  ASSERT_OK(cuLaunchGridAsync(fill, 1, 1, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(first, 1000, 22));
  EXPECT_TRUE(AllWordsAre(second, 1000, 22));
}

CONTRACT(StoredLaunch, OneBlock, "cuda.h:18396 cuLaunch") {
  UseDevice();
  const CUdeviceptr words = Allocate(4 * 500);
  ASSERT_OK(cuLaunch(StoredFill(words, 23, 500)));
  EXPECT_TRUE(AllWordsAre(words, 500, 23));
}

CONTRACT(StoredLaunch, SeveralDevicesAtOnceEachInItsStream,
         "cuda.h:18062 cuLaunchCooperativeKernelMultiDevice") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH) != 0,
              "one device at a time");
  CUdeviceptr words = Allocate(4 * 256);
  std::uint32_t value = 24;
  std::uint64_t count = 256;
  void* parameters[] = {&words, &value, &count};
  CUDA_LAUNCH_PARAMS launch{Kernel("fill"), 1, 1, 1, 256, 1, 1, 0, MakeStream(), parameters};
  ASSERT_OK(cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  EXPECT_TRUE(AllWordsAre(words, 256, 24));
}

}  // namespace spillway::contract
