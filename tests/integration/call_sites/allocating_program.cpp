// Allocates through a library: 12 times 2 MiB, then 4 times 1 MiB by another function. In between
// it throws, catches, and prints the throwing library.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

extern "C" int hoarder_take(size_t bytes);
extern "C" int hoarder_take_inside(size_t bytes);

namespace {

const char* ThrowingLibrary() {
  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"), &info) == 0) return "none";
  return std::strrchr(info.dli_fname, '/') + 1;
}

}  // namespace

int main() {
  CUdevice device;
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 3;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 3;
  int failures = 0;
  for (int i = 0; i < 12; ++i) failures += hoarder_take(2 << 20);
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception& error) {
    std::printf("%s by %s\n", error.what(), ThrowingLibrary());
  }
  for (int i = 0; i < 4; ++i) failures += hoarder_take_inside(1 << 20);
  std::printf("failures %d\n", failures);
  return 0;
}
