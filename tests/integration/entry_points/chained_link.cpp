// A library in front of the driver, like a tracer: reports each call and passes it on.
#include <dlfcn.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int cuDeviceGetCount(int* count) {
  const auto next = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_NEXT, "cuDeviceGetCount"));
  std::printf("%d ", CHAIN_LINK);
  return next == nullptr ? -1 : next(count);
}
