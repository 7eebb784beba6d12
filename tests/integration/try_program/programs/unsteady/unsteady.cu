// Prints a random number, so no two runs print the same.
#include <cuda_runtime.h>

#include <cstdio>
#include <random>

__global__ void Fill(int* to) { to[threadIdx.x] = 7; }

int main() {
  int* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  Fill<<<1, 32>>>(memory);
  int value = 0;
  if (cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  std::printf("random %u\nvalue %d\n", std::random_device{}(), value);
  return 0;
}
