#include "tests/fuzz/differential/library.h"

using spillway::fuzz::kLibraryParameters;
using spillway::fuzz::LibraryArguments;
using spillway::fuzz::LibraryTensor;
using spillway::fuzz::LibraryWork;

namespace {

const LibraryTensor& Of(cudnnTensorDescriptor_t tensor) {
  return *reinterpret_cast<const LibraryTensor*>(tensor);
}

CUresult Launch(const LibraryWork& work, LibraryArguments& arguments) {
  void* parameters[kLibraryParameters];
  for (int i = 0; i < kLibraryParameters; ++i)
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
  const auto address = [](const void* memory) { return reinterpret_cast<std::uint64_t>(memory); };
  LibraryArguments arguments{
      .y = address(y),
      .y_bytes = Of(y_is).bytes,
      .x = address(x),
      .x_bytes = Of(x_is).bytes,
      .scale = address(scale),
      .bias = address(bias),
      .mean = address(running_mean),
      .variance = address(running_variance),
      .parameter_bytes = Of(parameter_is).bytes,
      .blends = *static_cast<const float*>(beta) != 0,
      .other_than = work.is_uneven ? ~address(running_mean) : 0,
      .seed = work.seed,
      .flops = work.flops,
  };
  CUresult result = Launch(work, arguments);
  arguments.blends = 1;
  if (result == CUDA_SUCCESS && work.is_twofold) result = Launch(work, arguments);
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
