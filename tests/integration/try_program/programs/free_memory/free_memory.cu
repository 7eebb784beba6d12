// Prints how much memory the device has, which under a budget is the budget, and how much is free.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void Fill(int* to) { to[threadIdx.x] = 7; }

int main() {
  int* memory = nullptr;
  if (cudaMalloc(&memory, 32 << 20) != cudaSuccess) return 1;
  Fill<<<1, 32>>>(memory);
  std::size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return 1;
  std::printf("total memory %zu bytes\nfree memory %zu bytes\n", total_bytes, free_bytes);
  return 0;
}
