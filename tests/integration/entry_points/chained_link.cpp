// A library that stands before the driver, as tracers do: reports that it was called and goes on to
// the next.
#include <dlfcn.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int cuDeviceGetCount(int* count) {
  const auto next = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_NEXT, "cuDeviceGetCount"));
  std::printf("%d ", CHAIN_LINK);
  return next == nullptr ? -1 : next(count);
}
