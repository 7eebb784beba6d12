// The simulated driver's statistics, read in the process that it was loaded into.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

namespace spillway::test {

// Of the driver that SPILLWAY_DRIVER names. All bits set where it is not loaded, or is another.
inline unsigned long long Statistics(const char* key) {
  static void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  using Read = unsigned long long (*)(const char*);
  const auto read = driver ? reinterpret_cast<Read>(dlsym(driver, "spillway_sim_read")) : nullptr;
  return read ? read(key) : ~0ull;
}

}  // namespace spillway::test
