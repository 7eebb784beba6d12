#include "simulator/runtime/device_properties.h"

#include <cstdint>
#include <cstring>

namespace spillway::simulator::runtime {
namespace {

struct PropertyField {
  std::size_t offset_bytes;
  std::size_t size_bytes;
  CUdevice_attribute attribute;
};

#define SPILLWAY_FIELD(member, attribute)                             \
  {                                                                   \
    offsetof(cudaDeviceProp, member), sizeof(cudaDeviceProp::member), \
        CU_DEVICE_ATTRIBUTE_##attribute                               \
  }
#define SPILLWAY_ELEMENT(member, index, attribute)                         \
  {                                                                        \
    offsetof(cudaDeviceProp, member) + (index) * sizeof(int), sizeof(int), \
        CU_DEVICE_ATTRIBUTE_##attribute                                    \
  }

constexpr PropertyField kFields[] = {
    SPILLWAY_FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    SPILLWAY_FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    SPILLWAY_FIELD(warpSize, WARP_SIZE),
    SPILLWAY_FIELD(memPitch, MAX_PITCH),
    SPILLWAY_FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    SPILLWAY_ELEMENT(maxThreadsDim, 0, MAX_BLOCK_DIM_X),
    SPILLWAY_ELEMENT(maxThreadsDim, 1, MAX_BLOCK_DIM_Y),
    SPILLWAY_ELEMENT(maxThreadsDim, 2, MAX_BLOCK_DIM_Z),
    SPILLWAY_ELEMENT(maxGridSize, 0, MAX_GRID_DIM_X),
    SPILLWAY_ELEMENT(maxGridSize, 1, MAX_GRID_DIM_Y),
    SPILLWAY_ELEMENT(maxGridSize, 2, MAX_GRID_DIM_Z),
    SPILLWAY_FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
    SPILLWAY_FIELD(major, COMPUTE_CAPABILITY_MAJOR),
    SPILLWAY_FIELD(minor, COMPUTE_CAPABILITY_MINOR),
    SPILLWAY_FIELD(textureAlignment, TEXTURE_ALIGNMENT),
    SPILLWAY_FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    SPILLWAY_FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
    SPILLWAY_FIELD(integrated, INTEGRATED),
    SPILLWAY_FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    SPILLWAY_FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    SPILLWAY_FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    SPILLWAY_ELEMENT(maxTexture2D, 0, MAXIMUM_TEXTURE2D_WIDTH),
    SPILLWAY_ELEMENT(maxTexture2D, 1, MAXIMUM_TEXTURE2D_HEIGHT),
    SPILLWAY_ELEMENT(maxTexture3D, 0, MAXIMUM_TEXTURE3D_WIDTH),
    SPILLWAY_ELEMENT(maxTexture3D, 1, MAXIMUM_TEXTURE3D_HEIGHT),
    SPILLWAY_ELEMENT(maxTexture3D, 2, MAXIMUM_TEXTURE3D_DEPTH),
    SPILLWAY_FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
    SPILLWAY_FIELD(concurrentKernels, CONCURRENT_KERNELS),
    SPILLWAY_FIELD(ECCEnabled, ECC_ENABLED),
    SPILLWAY_FIELD(pciBusID, PCI_BUS_ID),
    SPILLWAY_FIELD(pciDeviceID, PCI_DEVICE_ID),
    SPILLWAY_FIELD(pciDomainID, PCI_DOMAIN_ID),
    SPILLWAY_FIELD(tccDriver, TCC_DRIVER),
    SPILLWAY_FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
    SPILLWAY_FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
    SPILLWAY_FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    SPILLWAY_FIELD(l2CacheSize, L2_CACHE_SIZE),
    SPILLWAY_FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    SPILLWAY_FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    SPILLWAY_FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    SPILLWAY_FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    SPILLWAY_FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    SPILLWAY_FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    SPILLWAY_FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    SPILLWAY_FIELD(managedMemory, MANAGED_MEMORY),
    SPILLWAY_FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
    SPILLWAY_FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    SPILLWAY_FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    SPILLWAY_FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    SPILLWAY_FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    SPILLWAY_FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    SPILLWAY_FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    SPILLWAY_FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
    SPILLWAY_FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    SPILLWAY_FIELD(pageableMemoryAccessUsesHostPageTables,
                   PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    SPILLWAY_FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    SPILLWAY_FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    SPILLWAY_FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    SPILLWAY_FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    SPILLWAY_FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    SPILLWAY_FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    SPILLWAY_FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    SPILLWAY_FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    SPILLWAY_FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    SPILLWAY_FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    SPILLWAY_FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    SPILLWAY_FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    SPILLWAY_FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    SPILLWAY_FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    SPILLWAY_FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
    SPILLWAY_FIELD(clusterLaunch, CLUSTER_LAUNCH),
    SPILLWAY_FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    SPILLWAY_FIELD(deviceNumaConfig, NUMA_CONFIG),
    SPILLWAY_FIELD(deviceNumaId, NUMA_ID),
    SPILLWAY_FIELD(mpsEnabled, MPS_ENABLED),
    SPILLWAY_FIELD(hostNumaId, HOST_NUMA_ID),
    SPILLWAY_FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    SPILLWAY_FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    SPILLWAY_FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};
#undef SPILLWAY_FIELD

void Store(cudaDeviceProp* properties, const PropertyField& field, int value) {
  auto* const target = reinterpret_cast<char*>(properties) + field.offset_bytes;
  const std::int64_t wide = value;  // little endian: the low bytes serve members of either width
  std::memcpy(target, &wide, field.size_bytes);
}

}  // namespace

cudaError_t FillProperties(const DriverTable& driver, cudaDeviceProp* properties, int device) {
  if (!properties) return cudaErrorInvalidValue;
  CUdevice handle = 0;
  if (driver.cuDeviceGet(&handle, device) != CUDA_SUCCESS) return cudaErrorInvalidDevice;
  std::memset(properties, 0, sizeof *properties);
  CUresult result = driver.cuDeviceGetName(properties->name, sizeof properties->name, handle);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceTotalMem(&properties->totalGlobalMem, handle);
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  driver.cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&properties->uuid), handle);
  for (const PropertyField& field : kFields) {
    int value = 0;
    if (driver.cuDeviceGetAttribute(&value, field.attribute, handle) == CUDA_SUCCESS)
      Store(properties, field, value);
  }
  return cudaSuccess;
}

}  // namespace spillway::simulator::runtime
