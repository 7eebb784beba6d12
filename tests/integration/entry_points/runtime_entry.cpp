// A program on the real CUDA runtime; linked with it as a shared library and as a static one.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  int devices = -1;
  int version = -1;
  void* memory = nullptr;
  std::printf("cudaGetDeviceCount=%d\n", cudaGetDeviceCount(&devices));
  const cudaError_t answer = cudaDriverGetVersion(&version);
  std::printf("cudaDriverGetVersion=%d version=%d\n", answer, version);
  std::printf("cudaMalloc=%d\n", cudaMalloc(&memory, 1 << 20));
  return 0;
}
