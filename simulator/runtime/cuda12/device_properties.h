// cudaDeviceProp as CUDA 12 lays it out: CUDA 13 removed some of its members.
#pragma once

#include <cuda_runtime_api.h>

#include "simulator/runtime/driver_table.h"

// In their order. KEPT has the type of CUDA 13's member; OLD is an int that has the value of a
// device attribute.
#define SPILLWAY_PROPERTIES_12(KEPT, OLD)                             \
  KEPT(name)                                                          \
  KEPT(uuid)                                                          \
  KEPT(luid)                                                          \
  KEPT(luidDeviceNodeMask)                                            \
  KEPT(totalGlobalMem)                                                \
  KEPT(sharedMemPerBlock)                                             \
  KEPT(regsPerBlock)                                                  \
  KEPT(warpSize)                                                      \
  KEPT(memPitch)                                                      \
  KEPT(maxThreadsPerBlock)                                            \
  KEPT(maxThreadsDim)                                                 \
  KEPT(maxGridSize)                                                   \
  OLD(clockRate, CLOCK_RATE)                                          \
  KEPT(totalConstMem)                                                 \
  KEPT(major)                                                         \
  KEPT(minor)                                                         \
  KEPT(textureAlignment)                                              \
  KEPT(texturePitchAlignment)                                         \
  OLD(deviceOverlap, GPU_OVERLAP)                                     \
  KEPT(multiProcessorCount)                                           \
  OLD(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT)                  \
  KEPT(integrated)                                                    \
  KEPT(canMapHostMemory)                                              \
  OLD(computeMode, COMPUTE_MODE)                                      \
  KEPT(maxTexture1D)                                                  \
  KEPT(maxTexture1DMipmap)                                            \
  OLD(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH)             \
  KEPT(maxTexture2D)                                                  \
  KEPT(maxTexture2DMipmap)                                            \
  KEPT(maxTexture2DLinear)                                            \
  KEPT(maxTexture2DGather)                                            \
  KEPT(maxTexture3D)                                                  \
  KEPT(maxTexture3DAlt)                                               \
  KEPT(maxTextureCubemap)                                             \
  KEPT(maxTexture1DLayered)                                           \
  KEPT(maxTexture2DLayered)                                           \
  KEPT(maxTextureCubemapLayered)                                      \
  KEPT(maxSurface1D)                                                  \
  KEPT(maxSurface2D)                                                  \
  KEPT(maxSurface3D)                                                  \
  KEPT(maxSurface1DLayered)                                           \
  KEPT(maxSurface2DLayered)                                           \
  KEPT(maxSurfaceCubemap)                                             \
  KEPT(maxSurfaceCubemapLayered)                                      \
  KEPT(surfaceAlignment)                                              \
  KEPT(concurrentKernels)                                             \
  KEPT(ECCEnabled)                                                    \
  KEPT(pciBusID)                                                      \
  KEPT(pciDeviceID)                                                   \
  KEPT(pciDomainID)                                                   \
  KEPT(tccDriver)                                                     \
  KEPT(asyncEngineCount)                                              \
  KEPT(unifiedAddressing)                                             \
  OLD(memoryClockRate, MEMORY_CLOCK_RATE)                             \
  KEPT(memoryBusWidth)                                                \
  KEPT(l2CacheSize)                                                   \
  KEPT(persistingL2CacheMaxSize)                                      \
  KEPT(maxThreadsPerMultiProcessor)                                   \
  KEPT(streamPrioritiesSupported)                                     \
  KEPT(globalL1CacheSupported)                                        \
  KEPT(localL1CacheSupported)                                         \
  KEPT(sharedMemPerMultiprocessor)                                    \
  KEPT(regsPerMultiprocessor)                                         \
  KEPT(managedMemory)                                                 \
  KEPT(isMultiGpuBoard)                                               \
  KEPT(multiGpuBoardGroupID)                                          \
  KEPT(hostNativeAtomicSupported)                                     \
  OLD(singleToDoublePerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO) \
  KEPT(pageableMemoryAccess)                                          \
  KEPT(concurrentManagedAccess)                                       \
  KEPT(computePreemptionSupported)                                    \
  KEPT(canUseHostPointerForRegisteredMem)                             \
  KEPT(cooperativeLaunch)                                             \
  OLD(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)  \
  KEPT(sharedMemPerBlockOptin)                                        \
  KEPT(pageableMemoryAccessUsesHostPageTables)                        \
  KEPT(directManagedMemAccessFromHost)                                \
  KEPT(maxBlocksPerMultiProcessor)                                    \
  KEPT(accessPolicyMaxWindowSize)                                     \
  KEPT(reservedSharedMemPerBlock)                                     \
  KEPT(hostRegisterSupported)                                         \
  KEPT(sparseCudaArraySupported)                                      \
  KEPT(hostRegisterReadOnlySupported)                                 \
  KEPT(timelineSemaphoreInteropSupported)                             \
  KEPT(memoryPoolsSupported)                                          \
  KEPT(gpuDirectRDMASupported)                                        \
  KEPT(gpuDirectRDMAFlushWritesOptions)                               \
  KEPT(gpuDirectRDMAWritesOrdering)                                   \
  KEPT(memoryPoolSupportedHandleTypes)                                \
  KEPT(deferredMappingCudaArraySupported)                             \
  KEPT(ipcEventSupported)                                             \
  KEPT(clusterLaunch)                                                 \
  KEPT(unifiedFunctionPointers)

namespace spillway::simulator::runtime {

struct DeviceProperties12 {
#define SPILLWAY_KEPT(member) decltype(cudaDeviceProp::member) member;
#define SPILLWAY_OLD(member, attribute) int member;
  SPILLWAY_PROPERTIES_12(SPILLWAY_KEPT, SPILLWAY_OLD)
#undef SPILLWAY_KEPT
#undef SPILLWAY_OLD
  int reserved[63];
};
static_assert(sizeof(DeviceProperties12) == 1032, "the size in CUDA 12.0 to 12.9");

DeviceProperties12 PropertiesOf(const DriverTable& driver, const cudaDeviceProp& newer, int device);

}  // namespace spillway::simulator::runtime
