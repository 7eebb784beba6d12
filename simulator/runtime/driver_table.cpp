#include "simulator/runtime/driver_table.h"

#include <dlfcn.h>

namespace spillway::simulator::runtime {
namespace {

struct LoadedDriver {
  bool present = false;
  PFN_cuGetProcAddress_v12000 lookup = nullptr;
  DriverTable legacy;
  DriverTable per_thread;
};

template <typename Function>
void Find(PFN_cuGetProcAddress_v12000 lookup, const char* name, int version, cuuint64_t flags,
          Function& out) {
  void* pointer = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  if (lookup(name, &pointer, version, flags, &status) != CUDA_SUCCESS) return;
  out.pointer = reinterpret_cast<decltype(out.pointer)>(pointer);
}

LoadedDriver Load() {
  LoadedDriver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return driver;
  driver.lookup =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!driver.lookup) return driver;
#define SPILLWAY_FIND(name, version)                                                    \
  Find(driver.lookup, #name, version, CU_GET_PROC_ADDRESS_DEFAULT, driver.legacy.name); \
  driver.per_thread.name = driver.legacy.name;
#define SPILLWAY_FIND_TWIN(name, version, twin_version)                                   \
  Find(driver.lookup, #name, version, CU_GET_PROC_ADDRESS_DEFAULT, driver.legacy.name);   \
  Find(driver.lookup, #name, twin_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, \
       driver.per_thread.name);
  SPILLWAY_DRIVER_FUNCTIONS(SPILLWAY_FIND)
  SPILLWAY_DRIVER_TWINS(SPILLWAY_FIND_TWIN)
#undef SPILLWAY_FIND
#undef SPILLWAY_FIND_TWIN
  driver.present = true;
  return driver;
}

const LoadedDriver& Loaded() {
  static const LoadedDriver* const driver = new LoadedDriver(Load());
  return *driver;
}

}  // namespace

bool LoadDriver() { return Loaded().present; }

const DriverTable& Driver(DefaultStream default_stream) {
  return default_stream == DefaultStream::kPerThread ? Loaded().per_thread : Loaded().legacy;
}

PFN_cuGetProcAddress_v12000 DriverLookup() { return Loaded().lookup; }

}  // namespace spillway::simulator::runtime
