// Sums arrays in two passes: each block in dynamic shared memory and by shuffles, then the blocks'
// sums.
#include <cooperative_groups.h>

#include "sample.h"

namespace cg = cooperative_groups;

template <typename T>
__global__ void Reduce(const T* in, T* out, unsigned count) {
  extern __shared__ int scratch[];
  T* const shared = reinterpret_cast<T*>(scratch);
  const cg::thread_block block = cg::this_thread_block();
  T sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += in[i];
  shared[block.thread_rank()] = sum;
  cg::sync(block);
  for (unsigned half = blockDim.x / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = sum = sum + shared[threadIdx.x + half];
    cg::sync(block);
  }
  const auto tile = cg::tiled_partition<32>(block);
  if (block.thread_rank() < 32) {
    for (int distance = tile.size() / 2; distance > 0; distance /= 2)
      sum += tile.shfl_down(sum, distance);
  }
  if (block.thread_rank() == 0) out[blockIdx.x] = sum;
}

int main() {
  constexpr int kArrays = 16;
  constexpr unsigned kCount = 1 << 20, kBlocks = 64, kThreads = 256;
  std::vector<int*> arrays;
  std::vector<long long> expected;
  for (int array = 0; array < kArrays; ++array) {
    samples::Numbers numbers(array);
    std::vector<int> values(kCount);
    long long sum = 0;
    for (int& value : values) sum += value = static_cast<int>(numbers.Next() % 100);
    arrays.push_back(samples::DeviceArray(values));
    expected.push_back(sum);
  }
  int* const partial = samples::DeviceArray<int>(kBlocks);
  int* const total = samples::DeviceArray<int>(1);
  for (int array = 0; array < kArrays; ++array) {
    Reduce<int><<<kBlocks, kThreads, kThreads * sizeof(int)>>>(arrays[array], partial, kCount);
    Reduce<int><<<1, kBlocks, kBlocks * sizeof(int)>>>(partial, total, kBlocks);
    CHECK(cudaGetLastError());
    const int sum = samples::HostCopy(total, 1)[0];
    std::printf("sum %d = %d\n", array, sum);
    samples::Expect(sum == expected[array], "a sum");
  }
  for (int* array : arrays) CHECK(cudaFree(array));
  CHECK(cudaFree(partial));
  CHECK(cudaFree(total));
  return 0;
}
