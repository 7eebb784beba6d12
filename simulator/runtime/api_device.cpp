#include "simulator/runtime/device_properties.h"
#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {
namespace {

cudaError_t CountDevices(const DriverTable& driver, int* count) {
  if (!count) return cudaErrorInvalidValue;
  const CUresult result = driver.cuDeviceGetCount(count);
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t DeviceHandle(const DriverTable& driver, int device, CUdevice* handle) {
  return driver.cuDeviceGet(handle, device) == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t GetAttribute(const DriverTable& driver, int* value, cudaDeviceAttr attribute,
                         int device) {
  CUdevice handle = 0;
  const cudaError_t found = DeviceHandle(driver, device, &handle);
  if (found != cudaSuccess) return found;
  return ToRuntime(
      driver.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), handle));
}

cudaError_t EnablePeer(const DriverTable& driver, int peer, unsigned flags) {
  CUcontext context = nullptr;
  const cudaError_t retained = PrimaryContext(peer, &context);
  return retained != cudaSuccess ? retained
                                 : ToRuntime(driver.cuCtxEnablePeerAccess(context, flags));
}

cudaError_t DisablePeer(const DriverTable& driver, int peer) {
  CUcontext context = nullptr;
  const cudaError_t retained = PrimaryContext(peer, &context);
  return retained != cudaSuccess ? retained : ToRuntime(driver.cuCtxDisablePeerAccess(context));
}

cudaError_t SetFlags(const DriverTable& driver, unsigned flags) {
  int device = 0;
  CurrentDevice(&device);
  // cudaDeviceMapHost is always on and has no counterpart among the primary context's flags.
  return ToRuntime(driver.cuDevicePrimaryCtxSetFlags(device, flags & ~unsigned{cudaDeviceMapHost}));
}

cudaError_t GetFlags(const DriverTable& driver, unsigned* flags) {
  if (!flags) return cudaErrorInvalidValue;
  int device = 0;
  int active = 0;
  CurrentDevice(&device);
  const CUresult result = driver.cuDevicePrimaryCtxGetState(device, flags, &active);
  *flags |= cudaDeviceMapHost;
  return ToRuntime(result);
}

cudaError_t InitDevice(int device) {
  CUcontext context = nullptr;
  return PrimaryContext(device, &context);
}

cudaError_t Choose(const DriverTable& driver, int* device, const cudaDeviceProp* wanted) {
  int count = 0;
  const cudaError_t counted = CountDevices(driver, &count);
  if (counted != cudaSuccess) return counted;
  if (!device || !wanted) return cudaErrorInvalidValue;
  *device = 0;
  for (int candidate = 0; candidate < count; ++candidate) {
    cudaDeviceProp offered;
    const cudaError_t filled = FillProperties(driver, &offered, candidate);
    if (filled != cudaSuccess) return filled;
    if (offered.major >= wanted->major && offered.totalGlobalMem >= wanted->totalGlobalMem) {
      *device = candidate;
      break;
    }
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace spillway::simulator::runtime

SPILLWAY_DEVICE_API(cudaGetDeviceCount, (int* count), CountDevices(driver, count))
SPILLWAY_DEVICE_API(cudaGetDevice, (int* device), CurrentDevice(device))
SPILLWAY_DEVICE_API(cudaSetDevice, (int device), SelectDevice(device))
SPILLWAY_DEVICE_API(cudaInitDevice, (int device, unsigned, unsigned), InitDevice(device))
SPILLWAY_DEVICE_API(cudaSetValidDevices, (int*, int), cudaSuccess)
SPILLWAY_DEVICE_API(cudaChooseDevice, (int* device, const cudaDeviceProp* wanted),
                    Choose(driver, device, wanted))
SPILLWAY_DEVICE_API(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device),
                    FillProperties(driver, properties, device))
SPILLWAY_DEVICE_API(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
                    GetAttribute(driver, value, attribute, device))
SPILLWAY_DEVICE_API(cudaSetDeviceFlags, (unsigned flags), SetFlags(driver, flags))
SPILLWAY_DEVICE_API(cudaGetDeviceFlags, (unsigned* flags), GetFlags(driver, flags))
SPILLWAY_DEVICE_API(cudaDeviceGetByPCIBusId, (int* device, const char* bus_id),
                    driver.cuDeviceGetByPCIBusId(device, bus_id))
SPILLWAY_DEVICE_API(cudaDeviceGetPCIBusId, (char* bus_id, int length, int device),
                    driver.cuDeviceGetPCIBusId(bus_id, length, device))
SPILLWAY_DEVICE_API(cudaDeviceGetP2PAttribute,
                    (int* value, cudaDeviceP2PAttr attribute, int source, int target),
                    driver.cuDeviceGetP2PAttribute(value,
                                                   static_cast<CUdevice_P2PAttribute>(attribute),
                                                   source, target))
SPILLWAY_DEVICE_API(cudaDeviceCanAccessPeer, (int* can_access, int device, int peer),
                    driver.cuDeviceCanAccessPeer(can_access, device, peer))
SPILLWAY_API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags),
             EnablePeer(driver, peer, flags))
SPILLWAY_API(cudaDeviceDisablePeerAccess, (int peer), DisablePeer(driver, peer))

SPILLWAY_API(cudaDeviceSynchronize, (), driver.cuCtxSynchronize())
SPILLWAY_DEVICE_API(cudaDeviceReset, (), ResetDevice())
SPILLWAY_API(cudaDeviceSetLimit, (cudaLimit limit, std::size_t value),
             driver.cuCtxSetLimit(static_cast<CUlimit>(limit), value))
SPILLWAY_API(cudaDeviceGetLimit, (std::size_t * value, cudaLimit limit),
             driver.cuCtxGetLimit(value, static_cast<CUlimit>(limit)))
SPILLWAY_API(cudaDeviceSetCacheConfig, (cudaFuncCache config),
             driver.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)))
SPILLWAY_API(cudaDeviceGetCacheConfig, (cudaFuncCache * config),
             driver.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)))
SPILLWAY_API(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest),
             driver.cuCtxGetStreamPriorityRange(least, greatest))
SPILLWAY_API(cudaCtxResetPersistingL2Cache, (), driver.cuCtxResetPersistingL2Cache())
SPILLWAY_API(cudaProfilerStart, (), driver.cuProfilerStart())
SPILLWAY_API(cudaProfilerStop, (), driver.cuProfilerStop())
