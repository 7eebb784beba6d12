// Sets a breakpoint in machine language, which the simulator does not have.
#include <cuda_runtime.h>

__global__ void Stop(float* to) {
  asm volatile("brkpt;");
  to[threadIdx.x] = 1.0f;
}

int main() {
  float* memory = nullptr;
  cudaMalloc(&memory, 4096);
  Stop<<<1, 32>>>(memory);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
