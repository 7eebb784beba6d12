// Counts bytes of several data sets: each block in shared memory, then all blocks with atomics.
#include "sample.h"

__constant__ unsigned kWeights[4];
__device__ unsigned long long all_counted;

__global__ void Count(const unsigned* words, int word_count, unsigned* bins) {
  __shared__ unsigned block_bins[256];
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) block_bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < word_count; i += gridDim.x * blockDim.x) {
    for (int byte = 0; byte < 4; ++byte)
      atomicAdd(&block_bins[words[i] >> 8 * byte & 255], kWeights[byte]);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], block_bins[i]);
  if (threadIdx.x == 0) atomicAdd(&all_counted, 1ull);
}

int main() {
  constexpr int kSets = 12, kWords = 1 << 20;
  const unsigned weights[4] = {1, 2, 3, 5};
  CHECK(cudaMemcpyToSymbol(kWeights, weights, sizeof weights));
  std::vector<unsigned*> sets, bins;
  for (int set = 0; set < kSets; ++set) {
    samples::Numbers numbers(set);
    std::vector<unsigned> words(kWords);
    for (unsigned& word : words) word = numbers.Next();
    sets.push_back(samples::DeviceArray(words));
    bins.push_back(samples::DeviceArray<unsigned>(256));
    CHECK(cudaMemset(bins[set], 0, 256 * sizeof(unsigned)));
  }
  for (int round = 0; round < 2; ++round) {
    for (int set = 0; set < kSets; ++set) Count<<<16, 192>>>(sets[set], kWords, bins[set]);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  for (int set = 0; set < kSets; ++set) {
    const std::vector<unsigned> counts = samples::HostCopy(bins[set], 256);
    unsigned long long sum = 0;
    for (const unsigned count : counts) sum += count;
    samples::Expect(sum == 2ull * kWords * (1 + 2 + 3 + 5), "the number of bytes");
    samples::Report("bins", set, counts);
  }
  unsigned long long blocks = 0;
  CHECK(cudaMemcpyFromSymbol(&blocks, all_counted, sizeof blocks));
  std::printf("blocks %llu\n", blocks);
  for (int set = 0; set < kSets; ++set) {
    CHECK(cudaFree(sets[set]));
    CHECK(cudaFree(bins[set]));
  }
  return 0;
}
