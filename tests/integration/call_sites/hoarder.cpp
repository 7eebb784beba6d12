// A library that allocates device memory for the program, through an exported function and a hidden
// one.
#include <cuda.h>

namespace {

[[gnu::noinline]] int TakeInside(CUdeviceptr* memory, size_t bytes) {
  const CUresult result = cuMemAlloc(memory, bytes);
  return result == CUDA_SUCCESS ? 0 : 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"), noinline)) int hoarder_take(size_t bytes) {
  CUdeviceptr memory = 0;
  const CUresult result = cuMemAlloc(&memory, bytes);
  return result == CUDA_SUCCESS ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) int hoarder_take_inside(size_t bytes) {
  CUdeviceptr memory = 0;
  return TakeInside(&memory, bytes);
}
