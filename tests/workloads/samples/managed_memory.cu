// Managed memory used by host and device in turns, beside ordinary device memory.
#include "sample.h"

__managed__ int rounds_done;

__global__ void Mix(float* managed, const float* device, int count, int round) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) managed[i] += device[i];
  if (i == 0) rounds_done = round;
}

int main() {
  constexpr int kRounds = 10, kCount = 1 << 20;
  float* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, kCount * sizeof(float)));
  for (int i = 0; i < kCount; ++i) managed[i] = static_cast<float>(i % 13);
  std::vector<float*> arrays;
  for (int i = 0; i < 2 * kRounds; ++i)
    arrays.push_back(samples::DeviceArray(samples::RandomFloats(kCount, i)));
  for (int round = 0; round < 2 * kRounds; ++round) {
    Mix<<<kCount / 256, 256>>>(managed, arrays[round], kCount, round);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    managed[round] += 1;
  }
  std::printf("rounds %d\n", rounds_done);
  samples::Report("managed", 0, std::vector<float>(managed, managed + kCount));
  for (float* array : arrays) CHECK(cudaFree(array));
  CHECK(cudaFree(managed));
  return 0;
}
