// Launches in every form, and the launches that the driver refuses.
#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

// Laid out as in contract_kernels.cu: a tag, a pointer, a short, a double.
struct Mixed {
  char tag;
  CUdeviceptr out;
  short add;
  double scale;
};

}  // namespace

CONTRACT(Launch, ParametersByPointerArray, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  const CUdeviceptr words = Allocate(4 * 5000);
  Launch("fill", 3, 100, nullptr, words, std::uint32_t{17}, std::uint64_t{5000});
  EXPECT_TRUE(AllWordsAre(words, 5000, 17));
}

CONTRACT(Launch, ParametersByBuffer, "cuda.h:17537 cuLaunchKernel: extra") {
  UseDevice();
  const CUdeviceptr words = Allocate(4 * 100);
  struct {
    CUdeviceptr out;
    std::uint32_t value;
    std::uint64_t count;
  } packed = {words, 18, 100};
  std::size_t size_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &size_bytes, CU_LAUNCH_PARAM_END};
  ASSERT_OK(cuLaunchKernel(Kernel("fill"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_TRUE(AllWordsAre(words, 100, 18));
}

CONTRACT(Launch, BothFormsAtOnceAreInvalid, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  CUdeviceptr words = Allocate(400);
  std::uint32_t value = 1;
  std::uint64_t count = 1;
  void* parameters[] = {&words, &value, &count};
  char buffer[24] = {};
  std::size_t size_bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size_bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cuLaunchKernel(Kernel("fill"), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, extra),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Launch, ExtendedForm, "cuda.h:17820 cuLaunchKernelEx") {
  UseDevice();
  const CUstream stream = MakeStream();
  CUdeviceptr words = Allocate(4 * 256);
  std::uint32_t value = 19;
  std::uint64_t count = 256;
  void* parameters[] = {&words, &value, &count};
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  CUlaunchConfig shape{};
  shape.gridDimX = 2;
  shape.gridDimY = shape.gridDimZ = shape.blockDimY = shape.blockDimZ = 1;
  shape.blockDimX = 128;
  shape.hStream = stream;
  ASSERT_OK(cuLaunchKernelEx(&shape, Kernel("fill"), parameters, nullptr));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(words, 256, 19));
  shape.attrs = &attribute;
  shape.numAttrs = 1;
  value = 20;
  ASSERT_OK(cuLaunchKernelEx(&shape, Kernel("fill"), parameters, nullptr));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(words, 256, 20));
}

CONTRACT(Launch, CooperativeForm, "cuda.h:17913 cuLaunchCooperativeKernel") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH), "no cooperative launch");
  CUdeviceptr counter = Allocate(4);
  ASSERT_OK(cuMemsetD32(counter, 0, 1));
  void* parameters[] = {&counter};
  ASSERT_OK(cuLaunchCooperativeKernel(Kernel("count_threads"), 4, 1, 1, 64, 1, 1, 0, nullptr,
                                      parameters));
  EXPECT_EQ(ReadWord(counter), 256u);
  EXPECT_EQ(cuLaunchCooperativeKernel(Kernel("count_threads"), 1 << 20, 1, 1, 1024, 1, 1, 0,
                                      nullptr, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

CONTRACT(Launch, PerThreadVariant, "cuda.h:17537 cuLaunchKernel; cuLaunchKernel_ptsz") {
  UseDevice();
  void* entry_point = nullptr;
  ASSERT_OK(cuGetProcAddress("cuLaunchKernel", &entry_point, 7000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  ASSERT_TRUE(entry_point != nullptr);
  CUdeviceptr words = Allocate(400);
  std::uint32_t value = 23;
  std::uint64_t count = 100;
  void* parameters[] = {&words, &value, &count};
  const auto launch = reinterpret_cast<decltype(&cuLaunchKernel)>(entry_point);
  ASSERT_OK(launch(Kernel("fill"), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  ASSERT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  EXPECT_TRUE(AllWordsAre(words, 100, 23));
}

CONTRACT(Launch, GridsAndBlocksHaveThreeDimensions, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  CUdeviceptr words = Allocate(4 * 2 * 3 * 4 * 5 * 6 * 7);
  void* parameters[] = {&words};
  ASSERT_OK(
      cuLaunchKernel(Kernel("coordinates"), 4, 3, 2, 7, 6, 5, 0, nullptr, parameters, nullptr));
  const auto read = ReadWords(words, 2 * 3 * 4 * 5 * 6 * 7);
  EXPECT_EQ(read.front(), 0u);
  EXPECT_EQ(read.back(), 123456u);
  EXPECT_EQ(read[((1 * 3 + 2) * 4 + 3) * 210 + (4 * 6 + 5) * 7 + 0], 123450u);
}

CONTRACT(Launch, DynamicSharedMemory, "cuda.h:17537 cuLaunchKernel: sharedMemBytes") {
  UseDevice();
  CUdeviceptr words = Allocate(4 * 64);
  std::vector<std::uint32_t> ramp(64);
  for (std::uint32_t i = 0; i < 64; ++i) ramp[i] = i;
  WriteWords(words, ramp);
  void* parameters[] = {&words};
  ASSERT_OK(
      cuLaunchKernel(Kernel("reverse"), 1, 1, 1, 64, 1, 1, 64 * 4, nullptr, parameters, nullptr));
  const auto read = ReadWords(words, 64);
  EXPECT_EQ(read[0], 63u);
  EXPECT_EQ(read[63], 0u);
  EXPECT_EQ(
      cuLaunchKernel(Kernel("reverse"), 1, 1, 1, 64, 1, 1, 1 << 20, nullptr, parameters, nullptr),
      CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Launch, StructuresByValue, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  const CUdeviceptr words = Allocate(16);
  Launch("by_value", 1, 1, nullptr, Mixed{'A', words, 300, 4.5}, std::uint32_t{99});
  EXPECT_TRUE((ReadWords(words, 4) == std::vector<std::uint32_t>{65, 300, 45, 99}));
}

CONTRACT(Launch, TwentyParameters, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  CUdeviceptr out = Allocate(4);
  std::uint32_t values[19];
  void* parameters[20] = {&out};
  for (std::uint32_t i = 0; i < 19; ++i) {
    values[i] = 1u << i;
    parameters[i + 1] = &values[i];
  }
  ASSERT_OK(LaunchRaw(Kernel("sum_twenty"), 1, 1, nullptr, parameters));
  EXPECT_EQ(ReadWord(out), (1u << 19) - 1);
}

CONTRACT(Launch, ParametersAreCopiedAtTheCall, "CUDA driver API, cuLaunchKernel: kernelParams") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4);
  CUdeviceptr target = words;
  std::uint32_t value = 31;
  std::uint64_t count = 1;
  void* parameters[] = {&target, &value, &count};
  Spin(20, stream);
  ASSERT_OK(LaunchRaw(Kernel("fill"), 1, 32, stream, parameters));
  value = 32;
  target = 0;
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(ReadWord(words), 31u);
}

CONTRACT(Launch, PointersInDeviceMemoryAreFollowed, "docs/architecture.md: indirect pointers") {
  UseDevice();
  const CUdeviceptr word = Allocate(4), cell = Allocate(8);
  ASSERT_OK(cuMemcpyHtoD(cell, &word, sizeof word));
  Launch("chase", 1, 1, nullptr, cell, std::uint32_t{88});
  EXPECT_EQ(ReadWord(word), 88u);
}

CONTRACT(Launch, AtomicsAddUpAcrossTheGrid, "CUDA programming guide, atomic functions") {
  UseDevice();
  const CUdeviceptr counter = Allocate(4);
  ASSERT_OK(cuMemsetD32(counter, 0, 1));
  Launch("count_threads", 200, 256, nullptr, counter);
  EXPECT_EQ(ReadWord(counter), 51200u);
}

CONTRACT(Launch, ImpossibleShapesAreInvalid, "cuda.h:17537 cuLaunchKernel") {
  UseDevice();
  CUdeviceptr counter = Allocate(4);
  void* parameters[] = {&counter};
  const CUfunction kernel = Kernel("count_threads");
  EXPECT_EQ(LaunchRaw(kernel, 0, 32, nullptr, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(LaunchRaw(kernel, 1, 0, nullptr, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(LaunchRaw(kernel, 1, 1025, nullptr, parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(kernel, 1, 70000, 1, 32, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  OBSERVE("no_parameters_given", LaunchRaw(kernel, 1, 32, nullptr, nullptr));
  OBSERVE("null_kernel", LaunchRaw(nullptr, 1, 32, nullptr, parameters));
}

}  // namespace spillway::contract
