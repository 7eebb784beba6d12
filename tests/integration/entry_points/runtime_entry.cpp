// A program on the real CUDA runtime, linked both as a shared and as a static library.
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
