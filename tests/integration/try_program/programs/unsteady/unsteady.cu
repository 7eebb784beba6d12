// Prints a random number and a seed from the clock, as many programs do: no two runs print the
// same.
#include <cuda_runtime.h>

#include <cstdio>
#include <ctime>
#include <random>

__global__ void Fill(int* to) { to[threadIdx.x] = 7; }

int main() {
  int* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
  Fill<<<1, 32>>>(memory);
  int value = 0;
  if (cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  std::printf("random %u\nseed %lld\nvalue %d\n", std::random_device{}(),
              (long long)std::time(nullptr), value);
  return 0;
}
