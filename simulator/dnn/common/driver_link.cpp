#include "simulator/dnn/common/driver_link.h"

#include <dlfcn.h>

namespace spillway::simulator::dnn {
namespace {

constexpr int kDriverApiVersion = 12000;
constexpr int kOldApiVersion = 4000;

using GetProcAddress = CUresult (*)(const char* name, void** function, int version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult* status);

template <typename Function>
bool Find(GetProcAddress get, const char* name, int version, Function* function) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = get(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  *function = reinterpret_cast<Function>(address);
  return result == CUDA_SUCCESS && address != nullptr;
}

bool Fill(DriverTable* table) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return false;
  return Find(get, "cuInit", kOldApiVersion, &table->Init) &&
         Find(get, "cuDriverGetVersion", kOldApiVersion, &table->DriverGetVersion) &&
         Find(get, "cuCtxGetCurrent", kOldApiVersion, &table->CtxGetCurrent) &&
         Find(get, "cuCtxSetCurrent", kOldApiVersion, &table->CtxSetCurrent) &&
         Find(get, "cuCtxGetDevice", kOldApiVersion, &table->CtxGetDevice) &&
         Find(get, "cuDevicePrimaryCtxRetain", kDriverApiVersion, &table->DevicePrimaryCtxRetain) &&
         Find(get, "cuDeviceGetAttribute", kOldApiVersion, &table->DeviceGetAttribute) &&
         Find(get, "cuLibraryLoadData", kDriverApiVersion, &table->LibraryLoadData) &&
         Find(get, "cuLibraryGetKernel", kDriverApiVersion, &table->LibraryGetKernel) &&
         Find(get, "cuLaunchKernel", kOldApiVersion, &table->LaunchKernel) &&
         Find(get, "cuMemAlloc", kOldApiVersion, &table->MemAlloc) &&
         Find(get, "cuMemFree", kOldApiVersion, &table->MemFree) &&
         Find(get, "cuMemHostAlloc", kOldApiVersion, &table->MemHostAlloc) &&
         Find(get, "cuMemFreeHost", kOldApiVersion, &table->MemFreeHost) &&
         Find(get, "cuMemcpyHtoDAsync", kOldApiVersion, &table->MemcpyHtoDAsync) &&
         Find(get, "cuMemcpyDtoHAsync", kOldApiVersion, &table->MemcpyDtoHAsync) &&
         Find(get, "cuMemcpy2DAsync", kOldApiVersion, &table->Memcpy2DAsync) &&
         Find(get, "cuStreamSynchronize", kOldApiVersion, &table->StreamSynchronize);
}

int AttributeOr(CUdevice_attribute attribute, CUdevice device, int otherwise) {
  int value = 0;
  const bool known =
      Driver()->DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value > 0;
  return known ? value : otherwise;
}

// FMAs per clock and multiprocessor (CUDA programming guide).
int Fp32Lanes(int major, int minor) {
  if (major == 3) return 192;
  const bool is_server_volta_or_ampere = (major == 6 || major == 7 || major == 8) && minor == 0;
  return is_server_volta_or_ampere || major == 7 ? 64 : 128;
}

}  // namespace

const DriverTable* Driver() {
  static DriverTable table = {};
  static const bool complete = Fill(&table);
  return complete ? &table : nullptr;
}

bool EnsureContext() {
  const DriverTable* driver = Driver();
  if (driver == nullptr || driver->Init(0) != CUDA_SUCCESS) return false;
  CUcontext context = nullptr;
  if (driver->CtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return true;
  if (driver->DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return false;
  return driver->CtxSetCurrent(context) == CUDA_SUCCESS;
}

DeviceRates CurrentDeviceRates() {
  CUdevice device = 0;
  if (Driver() == nullptr || Driver()->CtxGetDevice(&device) != CUDA_SUCCESS) return {1e13, 1e12};
  const int major = AttributeOr(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, 9);
  const int minor = AttributeOr(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, 0);
  const double multiprocessors = AttributeOr(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device, 100);
  const double clock_hz = 1e3 * AttributeOr(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device, 1500000);
  const double memory_hz =
      1e3 * AttributeOr(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device, 2000000);
  const double bus_bytes =
      AttributeOr(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device, 4096) / 8.0;
  return {multiprocessors * clock_hz * 2 * Fp32Lanes(major, minor), 2 * memory_hz * bus_bytes};
}

}  // namespace spillway::simulator::dnn
