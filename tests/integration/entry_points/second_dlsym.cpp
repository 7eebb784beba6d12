// Another library that exports dlsym, like other tools: records each request and forwards it to the
// C library.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle,
                                                              const char* name) noexcept {
  using Dlsym = void* (*)(void*, const char*);
  static const auto next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  if (std::strcmp(name, "cuMemAlloc_v2") == 0) std::puts("seen by the other");
  return next(handle, name);
}
