#include "simulator/runtime/entry.h"

#include <map>
#include <mutex>

namespace spillway::simulator::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int selected_device = 0;

struct PrimaryContexts {
  std::mutex mutex;
  std::map<int, CUcontext> retained;  // guarded by mutex
};

PrimaryContexts& Primaries() {
  static auto* const contexts = new PrimaryContexts;
  return *contexts;
}

bool KillsContext(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

cudaError_t Initialise() {
  if (!LoadDriver()) return cudaErrorInsufficientDriver;
  return ToRuntime(Driver().cuInit(0));
}

}  // namespace

cudaError_t Record(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t PeekLastError() { return last_error; }

cudaError_t TakeLastError() {
  const cudaError_t error = last_error;
  if (!KillsContext(error)) last_error = cudaSuccess;
  return error;
}

cudaError_t PrepareDriver() {
  static const cudaError_t status = Initialise();
  return status;
}

cudaError_t PrimaryContext(int device, CUcontext* context) {
  PrimaryContexts& primaries = Primaries();
  std::lock_guard lock(primaries.mutex);
  const auto found = primaries.retained.find(device);
  if (found != primaries.retained.end()) {
    *context = found->second;
    return cudaSuccess;
  }
  CUdevice handle = 0;
  CUresult result = Driver().cuDeviceGet(&handle, device);
  if (result == CUDA_SUCCESS) result = Driver().cuDevicePrimaryCtxRetain(context, handle);
  if (result == CUDA_SUCCESS) primaries.retained.emplace(device, *context);
  return ToRuntime(result);
}

cudaError_t PrepareContext() {
  const cudaError_t ready = PrepareDriver();
  if (ready != cudaSuccess) return ready;
  CUcontext current = nullptr;
  if (Driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) return cudaSuccess;
  return SelectDevice(selected_device);
}

cudaError_t CurrentDevice(int* device) {
  if (!device) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  CUdevice handle = 0;
  if (Driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
      Driver().cuCtxGetDevice(&handle) == CUDA_SUCCESS) {
    *device = handle;
    return cudaSuccess;
  }
  *device = selected_device;
  return cudaSuccess;
}

cudaError_t SelectDevice(int device) {
  int count = 0;
  const CUresult counted = Driver().cuDeviceGetCount(&count);
  if (counted != CUDA_SUCCESS) return ToRuntime(counted);
  if (count == 0) return cudaErrorNoDevice;
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  CUcontext context = nullptr;
  const cudaError_t retained = PrimaryContext(device, &context);
  if (retained != cudaSuccess) return retained;
  selected_device = device;
  return ToRuntime(Driver().cuCtxSetCurrent(context));
}

cudaError_t ResetDevice() {
  int device = 0;
  CurrentDevice(&device);
  PrimaryContexts& primaries = Primaries();
  std::lock_guard lock(primaries.mutex);
  const CUresult reset = Driver().cuDevicePrimaryCtxReset(device);
  if (primaries.retained.erase(device)) Driver().cuDevicePrimaryCtxRelease(device);
  Driver().cuCtxSetCurrent(nullptr);
  last_error = cudaSuccess;
  return ToRuntime(reset);
}

}  // namespace spillway::simulator::runtime
