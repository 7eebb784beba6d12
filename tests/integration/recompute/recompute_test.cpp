// Every reader finds dropped outputs of cuDNN, whatever became of their inputs.
#include <cuda.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/kernels/image.h"
#include "tests/support/paths.h"
#include "tests/support/statistics.h"

namespace {

using spillway::simulator::Image;
using spillway::simulator::KernelEntry;
using spillway::simulator::LaunchShape;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 8 * kMiB;
constexpr int kCount = kBytes / sizeof(float);
constexpr int kChannels = 4;

void NothingBody(const LaunchShape&, void* const*) {}
constexpr KernelEntry kKernels[] = {{"nothing", NothingBody, nullptr, 0, nullptr}};
constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kKernels, 0, nullptr};

using spillway::test::Statistics;

class RecomputeProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_DRIVER", spillway::test::SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(64 * kMiB).c_str(), 1);
    setenv("SPILLWAY_PARK", "off", 1);
    setenv("SPILLWAY_RECOMPUTE", "eager", 0);
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    context_ = context;
    ASSERT_EQ(cudnnCreate(&cudnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateActivationDescriptor(&relu_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(
        cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0),
        CUDNN_STATUS_SUCCESS);
    data_ = Tensor(kCount / kChannels / 2);
    parameters_ = Tensor(1, 1);
    x_ = Filled(3);
    y_ = Filled(-1);
  }
  void TearDown() override { EXPECT_EQ(Statistics("illegal_accesses"), 0u); }

  static cudnnTensorDescriptor_t Tensor(int width, int images = 2) {
    cudnnTensorDescriptor_t tensor = nullptr;
    EXPECT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images,
                                         kChannels, 1, width),
              CUDNN_STATUS_SUCCESS);
    return tensor;
  }
  static CUdeviceptr At(const float* data) { return reinterpret_cast<CUdeviceptr>(data); }
  static unsigned int Bits(float value) { return std::bit_cast<unsigned int>(value); }
  static float* Filled(float value, size_t bytes = kBytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(address, Bits(value), bytes / 4), CUDA_SUCCESS);
    return reinterpret_cast<float*>(address);
  }
  void Relu(const float* x, float* y, float beta = 0) {
    const float alpha = 1;
    ASSERT_EQ(cudnnActivationForward(cudnn_, relu_, &alpha, data_, x, &beta, data_, y),
              CUDNN_STATUS_SUCCESS);
  }
  static std::vector<float> Read(const float* data, size_t count = kCount) {
    std::vector<float> values(count);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), At(data), count * sizeof(float)), CUDA_SUCCESS);
    return values;
  }
  static void ExpectAll(const float* data, float value) {
    const std::vector<float> values = Read(data);
    EXPECT_EQ(std::count(values.begin(), values.end(), value), kCount)
        << "it begins with " << values[0];
  }
  template <class Work>
  static unsigned long long LaunchesBy(Work work) {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const unsigned long long before = Statistics("kernels");
    work();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return Statistics("kernels") - before;
  }

  CUcontext context_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cudnnActivationDescriptor_t relu_ = nullptr;
  cudnnTensorDescriptor_t data_ = nullptr, parameters_ = nullptr;
  float *x_ = nullptr, *y_ = nullptr;
};

TEST_F(RecomputeProgramTest, ReadRecomputesADroppedOutput) {
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, y_); }), 2u) << "the call's own, and its proof's";
  EXPECT_EQ(LaunchesBy([&] { ExpectAll(y_, 3); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, y_); }), 1u) << "it is proved";
  EXPECT_EQ(LaunchesBy([&] { ExpectAll(y_, 3); }), 1u);
}

TEST_F(RecomputeProgramTest, OverwritingTheInputRecomputesTheOutputFirst) {
  Relu(x_, y_);
  ASSERT_EQ(cuMemsetD32(At(x_), Bits(9), kCount), CUDA_SUCCESS);
  ExpectAll(y_, 3);
  Relu(x_, y_);
  const std::vector<float> other(kCount, 11);
  ASSERT_EQ(cuMemcpyHtoD(At(x_), other.data(), kBytes), CUDA_SUCCESS);
  ExpectAll(y_, 9);
}

TEST_F(RecomputeProgramTest, OverwritingTheInputByALibraryCallRecomputesTheOutputFirst) {
  Relu(x_, y_);
  float* const z = Filled(7);
  Relu(z, x_);
  ExpectAll(y_, 3);
  ExpectAll(x_, 7);
}

TEST_F(RecomputeProgramTest, FreeingTheInputRecomputesTheOutputFirst) {
  Relu(x_, y_);
  ASSERT_EQ(cuMemFree(At(x_)), CUDA_SUCCESS);
  Filled(9);
  ExpectAll(y_, 3);
  Relu(y_, x_ = Filled(0));
  ASSERT_EQ(cuMemFreeAsync(At(y_), nullptr), CUDA_SUCCESS);
  Filled(9);
  ExpectAll(x_, 3);
}

TEST_F(RecomputeProgramTest, RefusedCopyChangesNothing) {
  Relu(x_, y_);
  const std::vector<float> other(2 * kCount, 11);
  EXPECT_NE(cuMemcpyHtoD(At(x_), other.data(), kBytes + 4 * kMiB), CUDA_SUCCESS);
  ExpectAll(y_, 3);
}

TEST_F(RecomputeProgramTest, BlendedOrInPlaceOutputIsNotDropped) {
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, y_, 1); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, x_); }), 1u);
  ExpectAll(y_, 2);
}

TEST_F(RecomputeProgramTest, BatchNormUpdatesItsStatisticsOnce) {
  float* const scale = Filled(2, kChannels * 4);
  float* const bias = Filled(5, kChannels * 4);
  float* const mean = Filled(0, kChannels * 4);
  float* const variance = Filled(0, kChannels * 4);
  const float one = 1, zero = 0;
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i % 17);
  ASSERT_EQ(cuMemcpyHtoD(At(x_), values.data(), kBytes), CUDA_SUCCESS);
  const auto normalize = [&](float* y) {
    ASSERT_EQ(cudnnBatchNormalizationForwardTraining(cudnn_, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                     data_, x_, data_, y, parameters_, scale, bias,
                                                     0.5, mean, variance, 1e-5, nullptr, nullptr),
              CUDNN_STATUS_SUCCESS);
  };

  // Given a first call, for which there is no scratch memory yet, and a second one, whose output is
  // dropped
  normalize(y_);
  const std::vector<float> first = Read(y_), mean_after_one = Read(mean, kChannels);
  normalize(y_);
  const std::vector<float> mean_after_two = Read(mean, kChannels);
  ASSERT_EQ(cuMemsetD32(At(scale), Bits(100), kChannels), CUDA_SUCCESS);

  // Then it has its value from before its scale changed, and the mean was updated twice
  EXPECT_EQ(LaunchesBy([&] { EXPECT_TRUE(first == Read(y_)); }), 1u)
      << "it is made now, from the scale as it was";
  EXPECT_EQ(Read(mean, kChannels), mean_after_two);
  for (size_t i = 0; i < kChannels; ++i)
    EXPECT_NEAR(mean_after_two[i], 1.5 * mean_after_one[i], 1e-4);
}

TEST_F(RecomputeProgramTest, RecomputedConvolutionKeepsItsFormerWorkspaceIntact) {
  constexpr int kPixels = 1 << 15, kImages = 2;
  constexpr size_t kValues = size_t{kImages} * kChannels * kPixels;
  const cudnnTensorDescriptor_t data = Tensor(kPixels, kImages);
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  ASSERT_EQ(cudnnCreateFilterDescriptor(&filter), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kChannels,
                                       kChannels, 1, 3),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnSetConvolution2dDescriptor(convolution, 0, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                            CUDNN_DATA_FLOAT),
            CUDNN_STATUS_SUCCESS);
  constexpr cudnnConvolutionFwdAlgo_t kGemm = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
  size_t workspace_bytes = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(cudnn_, data, filter, convolution, data, kGemm,
                                                    &workspace_bytes),
            CUDNN_STATUS_SUCCESS);
  ASSERT_GE(workspace_bytes, 2 * kMiB);
  float* const weights = Filled(0.5, kChannels * kChannels * 3 * sizeof(float));
  float* const workspace = Filled(0, workspace_bytes);
  const float one = 1, zero = 0;
  const auto convolve = [&] {
    ASSERT_EQ(cudnnConvolutionForward(cudnn_, &one, data, x_, filter, weights, convolution, kGemm,
                                      workspace, workspace_bytes, &zero, data, y_),
              CUDNN_STATUS_SUCCESS);
  };

  // Given a convolution with a workspace of its own, and a dropped output. It is not the first
  // call's, for which there is no scratch memory yet
  float* const first_y = std::exchange(y_, Filled(-1, kValues * sizeof(float)));
  ASSERT_EQ(cuMemFree(At(first_y)), CUDA_SUCCESS);
  convolve();
  const std::vector<float> first = Read(y_, kValues);
  convolve();
  // And other memory at the workspace's address
  ASSERT_EQ(cuMemFree(At(workspace)), CUDA_SUCCESS);
  float* const other = Filled(7, workspace_bytes);
  ASSERT_EQ(other, workspace);

  EXPECT_EQ(LaunchesBy([&] { EXPECT_TRUE(first == Read(y_, kValues)); }), 1u);
  const size_t count = workspace_bytes / sizeof(float);
  const std::vector<float> values = Read(other, count);
  EXPECT_EQ(std::count(values.begin(), values.end(), 7.0f), static_cast<std::ptrdiff_t>(count));
}

TEST_F(RecomputeProgramTest, OtherStreamsAndThreadsReadADroppedOutput) {
  CUstream one = nullptr, other = nullptr;
  ASSERT_EQ(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cudnnSetStream(cudnn_, one), CUDNN_STATUS_SUCCESS);
  for (int round = 1; round < 10; ++round) {
    ASSERT_EQ(cuMemsetD32Async(At(x_), Bits(static_cast<float>(round)), kCount, one), CUDA_SUCCESS);
    Relu(x_, y_);
    ASSERT_EQ(cuStreamSynchronize(one), CUDA_SUCCESS);
    std::thread overwrites([&] {
      cuCtxSetCurrent(context_);
      EXPECT_EQ(cuMemsetD32Async(At(x_), Bits(-5), kCount, other), CUDA_SUCCESS);
    });
    std::vector<float> values(kCount);
    EXPECT_EQ(cuMemcpyDtoHAsync(values.data(), At(y_), kBytes, one), CUDA_SUCCESS);
    overwrites.join();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<float>(round)), kCount);
    ExpectAll(y_, static_cast<float>(round));
  }
}

TEST_F(RecomputeProgramTest, GraphReadsADroppedOutputAndOverwritesItsInput) {
  float* const z = Filled(0);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cudnnSetStream(cudnn_, stream), CUDNN_STATUS_SUCCESS);
  Relu(x_, y_);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  Relu(y_, z);
  ASSERT_EQ(cuMemsetD32Async(At(x_), Bits(9), kCount, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);

  Relu(x_, y_);
  ASSERT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);

  ExpectAll(z, 3);
  ExpectAll(y_, 3);
  ExpectAll(x_, 9);
}

TEST_F(RecomputeProgramTest, OutputsAreRecomputedBeforeAModuleIsUnloaded) {
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
  Relu(x_, y_);
  EXPECT_EQ(LaunchesBy([&] { ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { ExpectAll(y_, 3); }), 0u);
}

TEST_F(RecomputeProgramTest, OutputsAreRecomputedBeforeMemoryIsShared) {
  Relu(x_, y_);
  CUipcMemHandle handle;
  EXPECT_EQ(LaunchesBy([&] { ASSERT_EQ(cuIpcGetMemHandle(&handle, At(x_)), CUDA_SUCCESS); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, y_); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { ExpectAll(y_, 3); }), 0u)
      << "what others may write is no input to count on";
}

TEST_F(RecomputeProgramTest, ChainLargerThanAllMemoryIsRight) {
  // Given eight outputs of 8 MiB, each made from the one before, and a budget for fewer than all
  std::vector<float*> outputs{x_};
  for (int i = 0; i < 8; ++i) {
    outputs.push_back(Filled(-1));
    Relu(outputs[outputs.size() - 2], outputs.back());
  }
  ASSERT_EQ(cuMemsetD32(At(x_), Bits(9), kCount), CUDA_SUCCESS);
  for (size_t i = outputs.size() - 1; i > 0; --i) ExpectAll(outputs[i], 3);
}

// Scale and bias are small allocations. For graphs, the driver reports only their addresses.
TEST_F(RecomputeProgramTest, GraphOverwritesASmallInput) {
  float* const scale = Filled(2, kChannels * 4);
  float* const bias = Filled(5, kChannels * 4);
  float* const mean = Filled(0, kChannels * 4);
  float* const variance = Filled(1, kChannels * 4);
  const float one = 1, zero = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(At(bias), Bits(100), kChannels, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  const auto infer = [&] {
    ASSERT_EQ(cudnnBatchNormalizationForwardInference(cudnn_, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                      data_, x_, data_, y_, parameters_, scale,
                                                      bias, mean, variance, 1e-5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  infer();
  const std::vector<float> before = Read(y_);
  infer();

  ASSERT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);

  EXPECT_TRUE(Read(y_) == before);
}

TEST_F(RecomputeProgramTest, StreamWritesAWordOfTheInput) {
  Relu(x_, y_);
  ASSERT_EQ(cuStreamWriteValue32(nullptr, At(x_) + 64, Bits(9), 0), CUDA_SUCCESS);
  ExpectAll(y_, 3);
}

TEST_F(RecomputeProgramTest, StreamThatReusesADestroyedStreamsHandle) {
  float* const z = Filled(0);
  for (int round = 1; round < 6; ++round) {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cudnnSetStream(cudnn_, stream), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(At(x_), Bits(static_cast<float>(round)), kCount, stream),
              CUDA_SUCCESS);
    Relu(x_, y_);
    Relu(y_, z);
    ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    ASSERT_EQ(cudnnSetStream(cudnn_, nullptr), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ExpectAll(z, static_cast<float>(round));
    ExpectAll(y_, static_cast<float>(round));
  }
}

// The program releases its host function only after it has read.
TEST_F(RecomputeProgramTest, StreamThatWaitsForTheProgramDelaysNoRead) {
  CUstream held = nullptr, other = nullptr;
  ASSERT_EQ(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cudnnSetStream(cudnn_, held), CUDNN_STATUS_SUCCESS);
  for (const bool is_dropped : {true, false}) {
    CUdeviceptr word = 0;
    ASSERT_EQ(cuMemAlloc(&word, 4), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    if (is_dropped) Relu(x_, y_);
    ASSERT_EQ(cuStreamSynchronize(held), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitValue32(held, word, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    if (!is_dropped) Relu(x_, y_);
    std::vector<float> values(kCount);
    if (is_dropped) {
      EXPECT_EQ(cuMemcpyDtoHAsync(values.data(), At(y_), kBytes, other), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
      EXPECT_EQ(std::count(values.begin(), values.end(), 3.0f), kCount);
      EXPECT_EQ(cuMemsetD32Async(At(x_), Bits(4), kCount, other), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuStreamWriteValue32(other, word, 1, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(held), CUDA_SUCCESS);
    ExpectAll(y_, is_dropped ? 3 : 4);
  }
}

TEST_F(RecomputeProgramTest, BufferWithAPendingWriteIsNoReliableInput) {
  CUstream waits = nullptr, other = nullptr;
  CUdeviceptr word = 0;
  ASSERT_EQ(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&word, 4), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  // Given a write of the input that was enqueued before the call, and runs after it
  ASSERT_EQ(cuStreamWaitValue32(waits, word, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(At(x_), Bits(9), kCount, waits), CUDA_SUCCESS);
  ASSERT_EQ(cudnnSetStream(cudnn_, other), CUDNN_STATUS_SUCCESS);
  Relu(x_, y_);
  ASSERT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWriteValue32(other, word, 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(waits), CUDA_SUCCESS);

  ExpectAll(y_, 3);
  ExpectAll(x_, 9);
}

TEST_F(RecomputeProgramTest, ContextResetLeavesNothingBehind) {
  Relu(x_, y_);
  ASSERT_EQ(cuMemFree(At(x_)), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cudnnCreate(&cudnn_), CUDNN_STATUS_SUCCESS);
  x_ = Filled(4);
  y_ = Filled(-1);
  Relu(x_, y_);
  ExpectAll(y_, 4);
  for (float* const data : {x_, y_}) EXPECT_EQ(cuMemFree(At(data)), CUDA_SUCCESS);
}

TEST_F(RecomputeProgramTest, TextureOfADroppedOutputRestoresAndKeepsIt) {
  Relu(x_, y_);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {At(y_), CU_AD_FORMAT_FLOAT, 1, kBytes};
  const CUDA_TEXTURE_DESC description{};
  CUtexObject texture = 0;
  EXPECT_EQ(LaunchesBy([&] {
              ASSERT_EQ(cuTexObjectCreate(&texture, &resource, &description, nullptr),
                        CUDA_SUCCESS);
            }),
            1u);
  EXPECT_EQ(LaunchesBy([&] { Relu(x_, y_); }), 1u);
  EXPECT_EQ(LaunchesBy([&] { ExpectAll(y_, 3); }), 0u);
  EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_SUCCESS);
}

// One thread's calls in two streams that wait for each other, with the expected contents.
class RandomCalls {
 public:
  RandomCalls(CUcontext context, cudnnTensorDescriptor_t data, cudnnActivationDescriptor_t relu,
              unsigned seed)
      : context_(context), data_(data), relu_(relu), random_(seed) {}

  // Returns the first buffer with wrong contents, or -1.
  int Run(int calls) {
    cuCtxSetCurrent(context_);
    cudnnCreate(&cudnn_);
    for (CUstream& stream : streams_) cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING);
    for (Buffer& buffer : buffers_) Renew(&buffer);
    int wrong = -1;
    for (int i = 0; i < calls && wrong < 0; ++i) {
      const size_t at = random_() % 2;
      cuEventRecord(event_, streams_[1 - at]);
      cuStreamWaitEvent(streams_[at], event_, 0);
      if (!Next(streams_[at])) wrong = i;
    }
    return wrong;
  }

 private:
  struct Buffer {
    CUdeviceptr at = 0;
    float value = 0;
  };
  static constexpr size_t kBuffers = 4;

  bool Next(CUstream stream) {
    Buffer& to = buffers_[random_() % kBuffers];
    const Buffer& from = buffers_[random_() % kBuffers];
    switch (random_() % 8) {
      case 0:
        to.value = static_cast<float>(random_() % 1000);
        return cuMemsetD32Async(to.at, std::bit_cast<unsigned int>(to.value), kCount, stream) ==
               CUDA_SUCCESS;
      case 1:
        return Holds(to, stream);
      case 2:
        return cuMemFreeAsync(to.at, stream) == CUDA_SUCCESS &&
               (cuStreamSynchronize(stream), Renew(&to));
      case 3:
        return cuMemFree(to.at) == CUDA_SUCCESS && Renew(&to);
      default: {
        if (&to == &from) return true;
        const float alpha = 1, beta = 0;
        to.value = from.value;
        return cudnnSetStream(cudnn_, stream) == CUDNN_STATUS_SUCCESS &&
               cudnnActivationForward(cudnn_, relu_, &alpha, data_,
                                      reinterpret_cast<float*>(from.at), &beta, data_,
                                      reinterpret_cast<float*>(to.at)) == CUDNN_STATUS_SUCCESS;
      }
    }
  }
  bool Renew(Buffer* buffer) {
    buffer->value = static_cast<float>(random_() % 1000);
    return cuMemAlloc(&buffer->at, kBytes) == CUDA_SUCCESS &&
           cuMemsetD32Async(buffer->at, std::bit_cast<unsigned int>(buffer->value), kCount,
                            streams_[0]) == CUDA_SUCCESS &&
           cuStreamSynchronize(streams_[0]) == CUDA_SUCCESS;
  }
  static bool Holds(const Buffer& buffer, CUstream stream) {
    std::vector<float> values(kCount);
    return cuMemcpyDtoHAsync(values.data(), buffer.at, kBytes, stream) == CUDA_SUCCESS &&
           cuStreamSynchronize(stream) == CUDA_SUCCESS &&
           std::count(values.begin(), values.end(), buffer.value) == kCount;
  }

  const CUcontext context_;
  const cudnnTensorDescriptor_t data_;
  const cudnnActivationDescriptor_t relu_;
  std::minstd_rand random_;
  cudnnHandle_t cudnn_ = nullptr;
  CUstream streams_[2] = {};
  CUevent event_ = nullptr;
  Buffer buffers_[kBuffers];
};

TEST_F(RecomputeProgramTest, RandomCallsOfThreeThreadsReadTheRightBytes) {
  RandomCalls alone(context_, data_, relu_, 1), one(context_, data_, relu_, 2),
      other(context_, data_, relu_, 3);
  int wrong[3] = {};
  std::thread first([&] { wrong[1] = one.Run(300); });
  std::thread second([&] { wrong[2] = other.Run(300); });
  wrong[0] = alone.Run(300);
  first.join();
  second.join();
  EXPECT_EQ(wrong[0], -1);
  EXPECT_EQ(wrong[1], -1);
  EXPECT_EQ(wrong[2], -1);
}

class WithoutRecomputationTest : public RecomputeProgramTest {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_RECOMPUTE", "plan", 1);
    setenv("SPILLWAY_LEARN", "always", 1);
    setenv("SPILLWAY_HOST_LIMIT", "1", 1);
    RecomputeProgramTest::SetUp();
  }
};

// A batch norm's proof needs memory for its statistics.
TEST_F(WithoutRecomputationTest, JobThatFitsHasItsWholeBudget) {
  float* const scale = Filled(2, kChannels * 4);
  float* const statistics = Filled(0, kChannels * 4);
  float* const variance = Filled(0, kChannels * 4);
  const float one = 1, zero = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudnnBatchNormalizationForwardTraining(
                  cudnn_, CUDNN_BATCHNORM_SPATIAL, &one, &zero, data_, x_, data_, y_, parameters_,
                  scale, scale, 0.5, statistics, variance, 1e-5, nullptr, nullptr),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  Filled(1, 64 * kMiB - 2 * kBytes - 2 * kMiB);  // minus a slab of small allocations
}

}  // namespace
