#include <cstdint>
#include <cstring>

#include "simulator/runtime/launch.h"

namespace spillway::simulator::runtime {
namespace {

struct FunctionField {
  std::size_t offset_bytes;
  std::size_t size_bytes;
  CUfunction_attribute attribute;
};

#define SPILLWAY_FIELD(member, attribute)                                     \
  {                                                                           \
    offsetof(cudaFuncAttributes, member), sizeof(cudaFuncAttributes::member), \
        CU_FUNC_ATTRIBUTE_##attribute                                         \
  }

constexpr FunctionField kFunctionFields[] = {
    SPILLWAY_FIELD(sharedSizeBytes, SHARED_SIZE_BYTES),
    SPILLWAY_FIELD(constSizeBytes, CONST_SIZE_BYTES),
    SPILLWAY_FIELD(localSizeBytes, LOCAL_SIZE_BYTES),
    SPILLWAY_FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    SPILLWAY_FIELD(numRegs, NUM_REGS),
    SPILLWAY_FIELD(ptxVersion, PTX_VERSION),
    SPILLWAY_FIELD(binaryVersion, BINARY_VERSION),
    SPILLWAY_FIELD(cacheModeCA, CACHE_MODE_CA),
    SPILLWAY_FIELD(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES),
    SPILLWAY_FIELD(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT),
};
#undef SPILLWAY_FIELD

template <typename Call>
cudaError_t WithKernel(const void* function, Call call) {
  CUkernel kernel = nullptr;
  const cudaError_t resolved = ResolveKernel(function, &kernel);
  if (resolved != cudaSuccess) return resolved;
  int device = 0;
  CurrentDevice(&device);
  return ToRuntime(call(kernel, device));
}

cudaError_t Attributes(const DriverTable& driver, cudaFuncAttributes* attributes,
                       const void* function) {
  if (!attributes) return cudaErrorInvalidValue;
  std::memset(attributes, 0, sizeof *attributes);
  return WithKernel(function, [&](CUkernel kernel, CUdevice device) {
    for (const FunctionField& field : kFunctionFields) {
      int value = 0;
      const CUresult result = driver.cuKernelGetAttribute(&value, field.attribute, kernel, device);
      if (result != CUDA_SUCCESS) return result;
      const std::int64_t wide = value;
      std::memcpy(reinterpret_cast<char*>(attributes) + field.offset_bytes, &wide,
                  field.size_bytes);
    }
    return CUDA_SUCCESS;
  });
}

cudaError_t SetAttribute(const DriverTable& driver, const void* function,
                         cudaFuncAttribute attribute, int value) {
  return WithKernel(function, [&](CUkernel kernel, CUdevice device) {
    return driver.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel,
                                       device);
  });
}

cudaError_t ActiveBlocks(const DriverTable& driver, int* blocks, const void* function,
                         int block_size, std::size_t shared_bytes, unsigned flags) {
  return WithKernel(function, [&](CUkernel kernel, CUdevice) {
    return driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, reinterpret_cast<CUfunction>(kernel), block_size, shared_bytes, flags);
  });
}

cudaError_t DriverKernel(cudaKernel_t* out, const void* function) {
  return WithKernel(function, [&](CUkernel kernel, CUdevice) {
    *out = reinterpret_cast<cudaKernel_t>(kernel);
    return CUDA_SUCCESS;
  });
}

cudaError_t DriverFunctionOf(const DriverTable& driver, cudaFunction_t* out, const void* function) {
  return WithKernel(
      function, [&](CUkernel kernel, CUdevice) { return driver.cuKernelGetFunction(out, kernel); });
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_TWIN_API(cudaLaunchKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream),
                  Launch(driver, function, grid, block, arguments, shared_bytes, stream))
SPILLWAY_TWIN_API(cudaLaunchCooperativeKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream),
                  LaunchCooperative(driver, function, grid, block, arguments, shared_bytes, stream))
SPILLWAY_TWIN_API(cudaLaunchKernelExC, _ptsz,
                  (const cudaLaunchConfig_t* config, const void* function, void** arguments),
                  LaunchConfigured(driver, config, function, arguments))

SPILLWAY_API(cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void* function),
             Attributes(driver, attributes, function))
SPILLWAY_API(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value),
             SetAttribute(driver, function, attribute, value))
SPILLWAY_API(cudaFuncSetCacheConfig, (const void* function, cudaFuncCache config),
             WithKernel(function, [&](CUkernel kernel, CUdevice device) {
               return driver.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config),
                                                    device);
             }))
SPILLWAY_API(cudaFuncGetName, (const char** name, const void* function),
             WithKernel(function, [&](CUkernel kernel, CUdevice) {
               return driver.cuKernelGetName(name, kernel);
             }))
SPILLWAY_API(cudaFuncGetParamInfo,
             (const void* function, std::size_t index, std::size_t* offset_bytes,
              std::size_t* size_bytes),
             WithKernel(function, [&](CUkernel kernel, CUdevice) {
               return driver.cuKernelGetParamInfo(kernel, index, offset_bytes, size_bytes);
             }))
SPILLWAY_API(cudaGetKernel, (cudaKernel_t * kernel, const void* function),
             DriverKernel(kernel, function))
SPILLWAY_API(cudaGetFuncBySymbol, (cudaFunction_t * handle, const void* function),
             DriverFunctionOf(driver, handle, function))

SPILLWAY_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
             (int* blocks, const void* function, int block_size, std::size_t shared_bytes),
             ActiveBlocks(driver, blocks, function, block_size, shared_bytes, 0))
SPILLWAY_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int* blocks, const void* function, int block_size, std::size_t shared_bytes,
              unsigned flags),
             ActiveBlocks(driver, blocks, function, block_size, shared_bytes, flags))
SPILLWAY_API(cudaOccupancyAvailableDynamicSMemPerBlock,
             (std::size_t * shared_bytes, const void* function, int blocks, int block_size),
             WithKernel(function, [&](CUkernel kernel, CUdevice) {
               return driver.cuOccupancyAvailableDynamicSMemPerBlock(
                   shared_bytes, reinterpret_cast<CUfunction>(kernel), blocks, block_size);
             }))
SPILLWAY_API(cudaOccupancyMaxPotentialClusterSize,
             (int* size, const void* function, const cudaLaunchConfig_t* config),
             WithKernel(function, [&](CUkernel kernel, CUdevice) {
               const CUlaunchConfig driver_config = DriverConfig(*config);
               return driver.cuOccupancyMaxPotentialClusterSize(
                   size, reinterpret_cast<CUfunction>(kernel), &driver_config);
             }))
SPILLWAY_API(cudaOccupancyMaxActiveClusters,
             (int* clusters, const void* function, const cudaLaunchConfig_t* config),
             WithKernel(function, [&](CUkernel kernel, CUdevice) {
               const CUlaunchConfig driver_config = DriverConfig(*config);
               return driver.cuOccupancyMaxActiveClusters(
                   clusters, reinterpret_cast<CUfunction>(kernel), &driver_config);
             }))
