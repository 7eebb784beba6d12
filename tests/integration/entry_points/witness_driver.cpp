// A driver without devices that records, in $ENTRY_POINTS_WITNESS_FILE, the calling library of each
// call.
//
// It has every function (witness_stubs.cpp), so the real CUDA runtime finds all that it looks up.
// All but these return NOT_SUPPORTED.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define WITNESS extern "C" __attribute__((visibility("default")))

namespace {

void WriteDown(const char* what, const void* address) {
  Dl_info info;
  const char* const path = std::getenv("ENTRY_POINTS_WITNESS_FILE");
  if (path == nullptr || dladdr(const_cast<void*>(address), &info) == 0) return;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  FILE* const file = std::fopen(path, "a");
  std::fprintf(file, "%s %s\n", what, slash == nullptr ? info.dli_fname : slash + 1);
  std::fclose(file);
}

void* Own(const char* symbol) {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&Own), &info);
  return dlsym(dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD), symbol);
}

}  // namespace

WITNESS int cuInit(unsigned) {
  WriteDown("cuInit from", __builtin_return_address(0));
  WriteDown("itself finds cuMemAlloc_v2 in", Own("cuMemAlloc_v2"));
  return 0;
}

WITNESS int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

WITNESS int cuFromTheFuture() { return 0; }

WITNESS int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 500;
}

// Ignores versions except this function's own: the runtime continues with that one.
WITNESS int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t,
                                int* status) {
  WriteDown("cuGetProcAddress_v2 from", __builtin_return_address(0));
  const bool is_this = std::strcmp(symbol, "cuGetProcAddress") == 0 && version >= 12000;
  *function = Own(is_this ? "cuGetProcAddress_v2" : symbol);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr && status == nullptr ? 500 : 0;
}

// Two functions without hooks that record their arguments: one with arguments on the stack, one
// with a float.
WITNESS int cuLinkAddData_v2(void* a, int b, void* c, std::size_t d, const void* e, unsigned f,
                             void* g, void* h) {
  std::printf("cuLinkAddData_v2 %p %d %p %#zx %p %u %p %p\n", a, b, c, d, e, f, g, h);
  return 0;
}

WITNESS int cuTexRefSetMipmapLevelClamp(void* texture, float least, float most) {
  std::printf("cuTexRefSetMipmapLevelClamp %p %g %g\n", texture, static_cast<double>(least),
              static_cast<double>(most));
  return 0;
}
