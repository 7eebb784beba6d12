// Allocates from a pool that other processes may open, so that its memory cannot move.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void Fill(int* to) { to[threadIdx.x] = 7; }

int main() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  int* memory = nullptr;
  if (cudaMemPoolCreate(&pool, &properties) != cudaSuccess) return 1;
  if (cudaMallocFromPoolAsync(&memory, 24 << 20, pool, nullptr) != cudaSuccess) return 2;
  Fill<<<1, 32>>>(memory);
  int last = 0;
  if (cudaMemcpy(&last, memory + 31, sizeof last, cudaMemcpyDeviceToHost) != cudaSuccess) return 3;
  std::printf("last %d\n", last);
  return 0;
}
