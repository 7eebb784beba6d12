// A program of a newer toolkit. It is linked with one function of a newer driver, bound at its
// start, and looks forty-nine others up by name. It also allocates memory, so that there is
// something to report.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

extern "C" int cuFromTheFuture00();

int main() {
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 3;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return 3;
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&memory, 4 << 20) != CUDA_SUCCESS)
    return 3;
  std::printf("linked %d\n", cuFromTheFuture00());

  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (int number = 1; number < 50; ++number) {
      char name[32];
      std::snprintf(name, sizeof name, "cuFromTheFuture%02d", number);
      if (const auto function = reinterpret_cast<int (*)()>(dlsym(driver, name)))
        sum += function() - 9100;
    }
  }
  std::printf("looked up %d\n", sum);
  cuMemFree(memory);
  return cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS ? 0 : 3;
}
