// Shared by the benches: restart under the preload library, find the driver's functions, measure.
//
// Used by each bench, on its main thread.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "interposer/driver/cuda_abi.h"
#include "tests/support/paths.h"

namespace bench {

[[noreturn]] inline void Die(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

// A driver that does nothing, so that a measured time is Spillway's.
inline std::string NullDriver() { return spillway::test::BuildPath("tests-bin/libnull_driver.so"); }

// The second time the library is already loaded.
inline void StartUnderThePreload(char** arguments, const std::string& driver) {
  if (std::getenv("LD_PRELOAD") != nullptr) return;
  setenv("LD_PRELOAD", spillway::test::PreloadLibrary().c_str(), 1);
  setenv("SPILLWAY_DRIVER", driver.c_str(), 1);
  execv("/proc/self/exe", arguments);
  Die("cannot start again under the preload library");
}

inline double NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline double Quantile(std::vector<double>* values, double share) {
  const auto position = values->begin() + static_cast<std::ptrdiff_t>(
                                              share * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), position, values->end());
  return *position;
}

// Looked up by name as applications do, with a current context.
class OpenDriver {
 public:
  explicit OpenDriver(const char* library = "libcuda.so.1") : handle_(dlopen(library, RTLD_NOW)) {
    if (handle_ == nullptr) Die(dlerror());
    if (Find<decltype(&::cuInit)>("cuInit")(0) != CUDA_SUCCESS) Die("the driver does not answer");
    MakeCurrent();
  }
  template <class Function>
  Function Find(const char* name) const {
    const auto function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) Die(std::string("the driver has no ") + name);
    return function;
  }
  // Must be called in every thread.
  void MakeCurrent() const {
    CUcontext context;
    if (Find<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0) !=
            CUDA_SUCCESS ||
        Find<decltype(&::cuCtxSetCurrent)>("cuCtxSetCurrent")(context) != CUDA_SUCCESS)
      Die("no context");
  }

 private:
  void* const handle_;
};

inline bool IsFrom(const char* library, const void* function) {
  Dl_info info;
  return dladdr(const_cast<void*>(function), &info) != 0 && std::string(info.dli_fname) == library;
}

}  // namespace bench
