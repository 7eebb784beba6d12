// Chooses launch shapes and batches by queries of the device: occupancy, properties, free memory.
#include <algorithm>

#include "sample.h"

__global__ void Square(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= values[i];
}

int main() {
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  int least_grid = 0, block = 0, resident = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&least_grid, &block, Square, 0, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, Square, block, 0));
  samples::Expect(block > 0 && block <= properties.maxThreadsPerBlock && resident > 0,
                  "the block size");

  std::size_t free_bytes = 0, total_bytes = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  samples::Expect(free_bytes <= total_bytes, "the free memory");

  // As much as the free memory allows, but no more than a fixed list, so the output is the same on
  // any device.
  constexpr int kArrays = 14, kCount = 1 << 20;
  std::vector<int*> arrays;
  for (int array = 0; array < kArrays; ++array) {
    std::vector<int> values(kCount);
    for (int i = 0; i < kCount; ++i) values[i] = (i + array) % 1000;
    arrays.push_back(samples::DeviceArray(values));
    Square<<<(kCount + block - 1) / block, block>>>(arrays.back(), kCount);
  }
  for (int array = 0; array < kArrays; ++array) {
    Square<<<(kCount + block - 1) / block, block>>>(arrays[array], kCount);
    samples::Report("squares", array, samples::HostCopy(arrays[array], kCount));
  }
  CHECK(cudaGetLastError());
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, arrays[0]));
  std::printf("type %d device %d\n", static_cast<int>(attributes.type), attributes.device);
  for (int* array : arrays) CHECK(cudaFree(array));
  return 0;
}
