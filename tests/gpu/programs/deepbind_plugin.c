// A plug-in that looks up the driver itself. Loaded with RTLD_DEEPBIND, its own scope precedes
// preloaded libraries.
#include <dlfcn.h>
#include <stddef.h>

typedef int (*InitFunction)(unsigned);
typedef int (*RetainFunction)(void**, int);
typedef int (*SetFunction)(void*);
typedef int (*AllocFunction)(unsigned long long*, size_t);

int AllocateByPlugin(size_t bytes) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* context = NULL;
  unsigned long long address = 0;
  if (!driver) return -1;
  int result = ((InitFunction)dlsym(driver, "cuInit"))(0);
  if (!result) result = ((RetainFunction)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
  if (!result) result = ((SetFunction)dlsym(driver, "cuCtxSetCurrent"))(context);
  return result ? result : ((AllocFunction)dlsym(driver, "cuMemAlloc_v2"))(&address, bytes);
}
