#include "simulator/runtime/launch.h"

#include <cstdint>

namespace spillway::simulator::runtime {
namespace {

static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));

cudaError_t CheckShape(dim3 grid, dim3 block) {
  const bool empty = !grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z;
  return empty ? cudaErrorInvalidConfiguration : cudaSuccess;
}

// Sizes beyond the device's limits are an invalid value in the driver, a bad configuration here.
cudaError_t LaunchResult(CUresult result, dim3 grid, dim3 block) {
  const bool too_large = static_cast<std::uint64_t>(block.x) * block.y * block.z > 1024 ||
                         block.z > 64 || grid.y > 65535 || grid.z > 65535;
  if (result == CUDA_ERROR_INVALID_VALUE && too_large) return cudaErrorInvalidConfiguration;
  return ToRuntime(result);
}

template <typename Call>
cudaError_t WithKernel(const void* function, dim3 grid, dim3 block, Call call) {
  const cudaError_t shape = CheckShape(grid, block);
  if (shape != cudaSuccess) return shape;
  CUkernel kernel = nullptr;
  const cudaError_t resolved = ResolveKernel(function, &kernel);
  if (resolved != cudaSuccess) return resolved;
  return LaunchResult(call(reinterpret_cast<CUfunction>(kernel)), grid, block);
}

}  // namespace

cudaError_t Launch(const DriverTable& driver, const void* function, dim3 grid, dim3 block,
                   void** arguments, std::size_t shared_bytes, cudaStream_t stream) {
  return WithKernel(function, grid, block, [&](CUfunction kernel) {
    return driver.cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  });
}

cudaError_t LaunchCooperative(const DriverTable& driver, const void* function, dim3 grid,
                              dim3 block, void** arguments, std::size_t shared_bytes,
                              cudaStream_t stream) {
  return WithKernel(function, grid, block, [&](CUfunction kernel) {
    return driver.cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                            block.z, static_cast<unsigned>(shared_bytes), stream,
                                            arguments);
  });
}

CUlaunchConfig DriverConfig(const cudaLaunchConfig_t& config) {
  CUlaunchConfig out{};
  out.gridDimX = config.gridDim.x;
  out.gridDimY = config.gridDim.y;
  out.gridDimZ = config.gridDim.z;
  out.blockDimX = config.blockDim.x;
  out.blockDimY = config.blockDim.y;
  out.blockDimZ = config.blockDim.z;
  out.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  out.hStream = config.stream;
  out.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  out.numAttrs = config.numAttrs;
  return out;
}

cudaError_t LaunchConfigured(const DriverTable& driver, const cudaLaunchConfig_t* config,
                             const void* function, void** arguments) {
  if (!config) return cudaErrorInvalidValue;
  return WithKernel(function, config->gridDim, config->blockDim, [&](CUfunction kernel) {
    const CUlaunchConfig driver_config = DriverConfig(*config);
    return driver.cuLaunchKernelEx(&driver_config, kernel, arguments, nullptr);
  });
}

}  // namespace spillway::simulator::runtime
