#include "tests/fuzz/differential/library.h"

#include <algorithm>

using spillway::fuzz::ConvolutionArguments;
using spillway::fuzz::kConvolutionAlgorithms;
using spillway::fuzz::kHugeWorkspaceBytes;
using spillway::fuzz::LibraryArguments;
using spillway::fuzz::LibraryTensor;
using spillway::fuzz::LibraryWork;

namespace {

const LibraryTensor& Of(cudnnTensorDescriptor_t tensor) {
  return *reinterpret_cast<const LibraryTensor*>(tensor);
}

std::uint64_t Address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }

template <class Arguments>
CUresult Launch(const LibraryWork& work, Arguments& arguments) {
  constexpr std::size_t kCount = sizeof(Arguments) / sizeof(std::uint64_t);
  void* parameters[kCount];
  for (std::size_t i = 0; i < kCount; ++i)
    parameters[i] = reinterpret_cast<std::uint64_t*>(&arguments) + i;
  if (!work.is_extended)
    return cuLaunchKernel(work.kernel, 1, 1, 1, 1, 1, 1, 0, work.stream, parameters, nullptr);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = work.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cuLaunchKernelEx(&config, work.kernel, parameters, nullptr);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int wanted,
                                         cudnnDataType_t* type, int* dimensions, int sizes[],
                                         int strides[]) {
  if (wanted < 1) return CUDNN_STATUS_BAD_PARAM;
  *type = CUDNN_DATA_FLOAT;
  *dimensions = 1;
  sizes[0] = static_cast<int>(Of(tensor).bytes / sizeof(float));
  strides[0] = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t, const void*, const void* beta,
    const cudnnTensorDescriptor_t x_is, const void* x, const cudnnTensorDescriptor_t y_is, void* y,
    const cudnnTensorDescriptor_t parameter_is, const void* scale, const void* bias, double,
    void* running_mean, void* running_variance, double, void*, void*) {
  const auto& work = *reinterpret_cast<const LibraryWork*>(handle);
  LibraryArguments arguments{
      .y = Address(y),
      .y_bytes = Of(y_is).bytes,
      .x = Address(x),
      .x_bytes = Of(x_is).bytes,
      .scale = Address(scale),
      .bias = Address(bias),
      .mean = Address(running_mean),
      .variance = Address(running_variance),
      .parameter_bytes = Of(parameter_is).bytes,
      .blends = *static_cast<const float*>(beta) != 0,
      .other_than = work.is_uneven ? ~Address(running_mean) : 0,
      .seed = work.seed,
      .flops = work.flops,
  };
  CUresult result = Launch(work, arguments);
  arguments.blends = 1;
  if (result == CUDA_SUCCESS && work.is_twofold) result = Launch(work, arguments);
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*,
                                      const cudnnTensorDescriptor_t x_is, const void* x,
                                      const cudnnFilterDescriptor_t, const void*,
                                      const cudnnConvolutionDescriptor_t,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void*,
                                      const cudnnTensorDescriptor_t y_is, void* y) {
  const auto& work = *reinterpret_cast<const LibraryWork*>(handle);
  const std::uint64_t seed = work.seed + algorithm;
  ConvolutionArguments first{
      Address(workspace), workspace_bytes, Address(x), Of(x_is).bytes, seed, 0};
  ConvolutionArguments second{Address(y),      Of(y_is).bytes, Address(workspace),
                              workspace_bytes, seed,           work.flops};
  CUresult result = Launch(work, first);
  if (result == CUDA_SUCCESS) result = Launch(work, second);
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

// The first is the only one of its kind, so no budget hides it. Others need more than any device
// has, or nothing.
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, const int requested,
    int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  const auto& work = *reinterpret_cast<const LibraryWork*>(handle);
  const std::size_t memory[kConvolutionAlgorithms] = {work.workspace_bytes, kHugeWorkspaceBytes, 0,
                                                      kHugeWorkspaceBytes};
  *returned = std::min(requested, kConvolutionAlgorithms);
  for (int i = 0; i < *returned; ++i) {
    results[i] = {};
    results[i].algo = static_cast<cudnnConvolutionFwdAlgo_t>(i);
    results[i].memory = memory[i];
    results[i].determinism = i == 0 ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    results[i].mathType = i == 3 ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
