// Adds vectors, many pairs of them, in two rounds.
#include "sample.h"

__global__ void Add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  constexpr int kPairs = 10, kCount = 1 << 20;
  std::vector<float*> left, right, sums;
  for (int pair = 0; pair < kPairs; ++pair) {
    left.push_back(samples::DeviceArray(samples::RandomFloats(kCount, 2 * pair)));
    right.push_back(samples::DeviceArray(samples::RandomFloats(kCount, 2 * pair + 1)));
    sums.push_back(samples::DeviceArray<float>(kCount));
  }
  for (int round = 0; round < 2; ++round) {
    for (int pair = 0; pair < kPairs; ++pair) {
      Add<<<(kCount + 255) / 256, 256>>>(left[pair], right[pair], sums[pair], kCount);
      Add<<<(kCount + 255) / 256, 256>>>(sums[pair], left[pair], right[pair], kCount);
    }
  }
  CHECK(cudaGetLastError());
  for (int pair = 0; pair < kPairs; ++pair) {
    samples::Report("sum", pair, samples::HostCopy(sums[pair], kCount));
    samples::Report("right", pair, samples::HostCopy(right[pair], kCount));
  }
  for (auto* list : {&left, &right, &sums}) {
    for (float* memory : *list) CHECK(cudaFree(memory));
  }
  return 0;
}
