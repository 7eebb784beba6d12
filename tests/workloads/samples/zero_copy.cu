// Kernels on host memory that the device can access: mapped at allocation, and the program's own
// memory, registered.
#include "sample.h"

__global__ void AddInto(float* device, const float* a, float* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  device[i] = a[i] + b[i];
  b[i] = device[i] * 2;
}

int main() {
  constexpr int kRounds = 12, kCount = 1 << 19;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  CHECK(cudaSetDeviceFlags(cudaDeviceMapHost));
  float *a = nullptr, *a_seen = nullptr, *b_seen = nullptr;
  CHECK(cudaHostAlloc(&a, kBytes, cudaHostAllocMapped));
  auto* const b = static_cast<float*>(std::aligned_alloc(4096, kBytes));
  CHECK(cudaHostRegister(b, kBytes, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&a_seen, a, 0));
  CHECK(cudaHostGetDevicePointer(&b_seen, b, 0));
  samples::Numbers numbers(3);
  for (int i = 0; i < kCount; ++i) {
    a[i] = numbers.NextFloat();
    b[i] = numbers.NextFloat();
  }
  std::vector<float*> sums;
  for (int round = 0; round < kRounds; ++round) {
    sums.push_back(samples::DeviceArray<float>(2 * kCount));
    AddInto<<<(kCount + 255) / 256, 256>>>(sums.back(), a_seen, b_seen, kCount);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  samples::Report("host", 0, std::vector<float>(b, b + kCount));
  for (int round = 0; round < kRounds; ++round) {
    samples::Report("sums", round, samples::HostCopy(sums[round], kCount));
    CHECK(cudaFree(sums[round]));
  }
  CHECK(cudaHostUnregister(b));
  std::free(b);
  CHECK(cudaFreeHost(a));
  return 0;
}
