#include <cstring>

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {
namespace {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

CUdeviceptr* AddressOf(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

cudaError_t Allocate(const DriverTable& driver, void** pointer, std::size_t size_bytes) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size_bytes == 0) return cudaSuccess;
  return ToRuntime(driver.cuMemAlloc(AddressOf(pointer), size_bytes));
}

cudaError_t Free(const DriverTable& driver, void* pointer) {
  return pointer ? ToRuntime(driver.cuMemFree(Address(pointer))) : cudaSuccess;
}

cudaError_t AllocateHost(const DriverTable& driver, void** pointer, std::size_t size_bytes,
                         unsigned flags) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size_bytes == 0) return cudaSuccess;
  return ToRuntime(driver.cuMemHostAlloc(pointer, size_bytes, flags));
}

cudaError_t AllocateAsync(const DriverTable& driver, void** pointer, std::size_t size_bytes,
                          cudaStream_t stream) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size_bytes == 0) return cudaSuccess;
  return ToRuntime(driver.cuMemAllocAsync(AddressOf(pointer), size_bytes, stream));
}

cudaError_t FreeAsync(const DriverTable& driver, void* pointer, cudaStream_t stream) {
  return pointer ? ToRuntime(driver.cuMemFreeAsync(Address(pointer), stream)) : cudaSuccess;
}

// Elements of 16 bytes give the strictest pitch, which suits every type.
cudaError_t AllocatePitch(const DriverTable& driver, void** pointer, std::size_t* pitch_bytes,
                          std::size_t width_bytes, std::size_t height) {
  if (!pointer || !pitch_bytes) return cudaErrorInvalidValue;
  *pointer = nullptr;
  *pitch_bytes = 0;
  if (width_bytes == 0 || height == 0) return cudaSuccess;
  return ToRuntime(
      driver.cuMemAllocPitch(AddressOf(pointer), pitch_bytes, width_bytes, height, 16));
}

cudaError_t Allocate3D(const DriverTable& driver, cudaPitchedPtr* pitched, cudaExtent extent) {
  if (!pitched) return cudaErrorInvalidValue;
  *pitched = {nullptr, 0, extent.width, extent.height};
  return AllocatePitch(driver, &pitched->ptr, &pitched->pitch, extent.width,
                       extent.height * extent.depth);
}

cudaMemoryType RuntimeMemoryType(unsigned driver_type, unsigned managed) {
  if (managed) return cudaMemoryTypeManaged;
  if (driver_type == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  if (driver_type == CU_MEMORYTYPE_DEVICE) return cudaMemoryTypeDevice;
  return cudaMemoryTypeUnregistered;
}

// An unknown address is ordinary host memory: success, unregistered.
cudaError_t PointerAttributes(const DriverTable& driver, cudaPointerAttributes* attributes,
                              const void* pointer) {
  if (!attributes) return cudaErrorInvalidValue;
  std::memset(attributes, 0, sizeof *attributes);
  unsigned type = 0;
  unsigned managed = 0;
  int device = -2;
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
  const CUresult result = driver.cuPointerGetAttributes(5, wanted, values, Address(pointer));
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) return ToRuntime(result);
  attributes->type = RuntimeMemoryType(type, managed);
  const bool known = attributes->type != cudaMemoryTypeUnregistered;
  attributes->device = known ? device : -2;
  attributes->devicePointer = known ? reinterpret_cast<void*>(device_pointer) : nullptr;
  attributes->hostPointer = known ? host_pointer : const_cast<void*>(pointer);
  return cudaSuccess;
}

cudaError_t HostRegister(const DriverTable& driver, void* pointer, std::size_t size_bytes,
                         unsigned flags) {
  if (!pointer || size_bytes == 0) return cudaErrorInvalidValue;
  return ToRuntime(driver.cuMemHostRegister(pointer, size_bytes, flags));
}

CUmemLocation DriverLocation(cudaMemLocation location) {
  CUmemLocation out{};
  out.type = static_cast<CUmemLocationType>(location.type);
  out.id = location.id;
  return out;
}

cudaError_t OpenEvent(const DriverTable& driver, cudaEvent_t* event,
                      const cudaIpcEventHandle_t& handle) {
  CUipcEventHandle driver_handle;
  std::memcpy(&driver_handle, &handle, sizeof driver_handle);
  return ToRuntime(driver.cuIpcOpenEventHandle(event, driver_handle));
}

cudaError_t OpenMemory(const DriverTable& driver, void** pointer, const cudaIpcMemHandle_t& handle,
                       unsigned flags) {
  CUipcMemHandle driver_handle;
  std::memcpy(&driver_handle, &handle, sizeof driver_handle);
  return ToRuntime(driver.cuIpcOpenMemHandle(AddressOf(pointer), driver_handle, flags));
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_API(cudaMalloc, (void** pointer, std::size_t size_bytes),
             Allocate(driver, pointer, size_bytes))
SPILLWAY_API(cudaFree, (void* pointer), Free(driver, pointer))
SPILLWAY_API(cudaMallocHost, (void** pointer, std::size_t size_bytes),
             AllocateHost(driver, pointer, size_bytes, 0))
SPILLWAY_API(cudaHostAlloc, (void** pointer, std::size_t size_bytes, unsigned flags),
             AllocateHost(driver, pointer, size_bytes, flags))
SPILLWAY_API(cudaFreeHost, (void* pointer), pointer ? driver.cuMemFreeHost(pointer) : CUDA_SUCCESS)
SPILLWAY_API(cudaHostRegister, (void* pointer, std::size_t size_bytes, unsigned flags),
             HostRegister(driver, pointer, size_bytes, flags))
SPILLWAY_API(cudaHostUnregister, (void* pointer), driver.cuMemHostUnregister(pointer))
SPILLWAY_API(cudaHostGetDevicePointer, (void** device_pointer, void* host_pointer, unsigned flags),
             driver.cuMemHostGetDevicePointer(AddressOf(device_pointer), host_pointer, flags))
SPILLWAY_API(cudaHostGetFlags, (unsigned* flags, void* pointer),
             driver.cuMemHostGetFlags(flags, pointer))
SPILLWAY_API(cudaMallocManaged, (void** pointer, std::size_t size_bytes, unsigned flags),
             driver.cuMemAllocManaged(AddressOf(pointer), size_bytes, flags))
SPILLWAY_API(cudaMallocPitch,
             (void** pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
              std::size_t height),
             AllocatePitch(driver, pointer, pitch_bytes, width_bytes, height))
SPILLWAY_API(cudaMalloc3D, (cudaPitchedPtr * pitched, cudaExtent extent),
             Allocate3D(driver, pitched, extent))
SPILLWAY_API(cudaMemGetInfo, (std::size_t * free_bytes, std::size_t* total_bytes),
             driver.cuMemGetInfo(free_bytes, total_bytes))
SPILLWAY_API(cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void* pointer),
             PointerAttributes(driver, attributes, pointer))

SPILLWAY_TWIN_API(cudaMallocAsync, _ptsz,
                  (void** pointer, std::size_t size_bytes, cudaStream_t stream),
                  AllocateAsync(driver, pointer, size_bytes, stream))
SPILLWAY_TWIN_API(cudaMallocFromPoolAsync, _ptsz,
                  (void** pointer, std::size_t size_bytes, cudaMemPool_t pool, cudaStream_t stream),
                  driver.cuMemAllocFromPoolAsync(AddressOf(pointer), size_bytes, pool, stream))
SPILLWAY_TWIN_API(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream),
                  FreeAsync(driver, pointer, stream))
SPILLWAY_DEVICE_API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
                    driver.cuDeviceGetDefaultMemPool(pool, device))
SPILLWAY_DEVICE_API(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
                    driver.cuDeviceSetMemPool(device, pool))
SPILLWAY_DEVICE_API(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
                    driver.cuDeviceGetMemPool(pool, device))
SPILLWAY_API(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* properties),
             driver.cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties)))
SPILLWAY_API(cudaMemPoolDestroy, (cudaMemPool_t pool), driver.cuMemPoolDestroy(pool))
SPILLWAY_API(cudaMemPoolTrimTo, (cudaMemPool_t pool, std::size_t keep_bytes),
             driver.cuMemPoolTrimTo(pool, keep_bytes))
SPILLWAY_API(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
             driver.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value))
SPILLWAY_API(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
             driver.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value))
SPILLWAY_API(cudaMemPoolSetAccess,
             (cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, std::size_t count),
             driver.cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(descriptions),
                                       count))
SPILLWAY_API(cudaMemPoolGetAccess,
             (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation* location),
             driver.cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                                       reinterpret_cast<CUmemLocation*>(location)))

SPILLWAY_API(cudaMemPoolExportToShareableHandle,
             (void* shareable, cudaMemPool_t pool, cudaMemAllocationHandleType type,
              unsigned flags),
             driver.cuMemPoolExportToShareableHandle(shareable, pool,
                                                     static_cast<CUmemAllocationHandleType>(type),
                                                     flags))
SPILLWAY_API(cudaMemPoolImportFromShareableHandle,
             (cudaMemPool_t * pool, void* shareable, cudaMemAllocationHandleType type,
              unsigned flags),
             driver.cuMemPoolImportFromShareableHandle(pool, shareable,
                                                       static_cast<CUmemAllocationHandleType>(type),
                                                       flags))
SPILLWAY_API(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData * data, void* pointer),
             driver.cuMemPoolExportPointer(reinterpret_cast<CUmemPoolPtrExportData*>(data),
                                           Address(pointer)))
SPILLWAY_API(cudaMemPoolImportPointer,
             (void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data),
             driver.cuMemPoolImportPointer(AddressOf(pointer), pool,
                                           reinterpret_cast<CUmemPoolPtrExportData*>(data)))

SPILLWAY_TWIN_API(cudaMemPrefetchAsync, _ptsz,
                  (const void* pointer, std::size_t size_bytes, cudaMemLocation location,
                   unsigned flags, cudaStream_t stream),
                  driver.cuMemPrefetchAsync(Address(pointer), size_bytes, DriverLocation(location),
                                            flags, stream))
SPILLWAY_API(cudaMemAdvise,
             (const void* pointer, std::size_t size_bytes, cudaMemoryAdvise advice,
              cudaMemLocation location),
             driver.cuMemAdvise(Address(pointer), size_bytes, static_cast<CUmem_advise>(advice),
                                DriverLocation(location)))
SPILLWAY_API(cudaMemRangeGetAttribute,
             (void* data, std::size_t data_bytes, cudaMemRangeAttribute attribute,
              const void* pointer, std::size_t size_bytes),
             driver.cuMemRangeGetAttribute(data, data_bytes,
                                           static_cast<CUmem_range_attribute>(attribute),
                                           Address(pointer), size_bytes))

SPILLWAY_API(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
             driver.cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event))
SPILLWAY_API(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
             OpenEvent(driver, event, handle))
SPILLWAY_API(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void* pointer),
             driver.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Address(pointer)))
SPILLWAY_API(cudaIpcOpenMemHandle, (void** pointer, cudaIpcMemHandle_t handle, unsigned flags),
             OpenMemory(driver, pointer, handle, flags))
SPILLWAY_API(cudaIpcCloseMemHandle, (void* pointer), driver.cuIpcCloseMemHandle(Address(pointer)))
