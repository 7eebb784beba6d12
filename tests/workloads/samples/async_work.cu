// The host works while the device does: repeated event queries, timed spans, stream-ordered
// allocation.
#include "sample.h"

__global__ void Increment(int* values, int by, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += by;
}

int main() {
  constexpr int kParts = 12, kCount = 1 << 20;
  constexpr std::size_t kBytes = kCount * sizeof(int);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  int* host = nullptr;
  CHECK(cudaMallocHost(&host, kBytes));
  for (int i = 0; i < kCount; ++i) host[i] = i;

  CHECK(cudaEventRecord(begin, stream));
  std::vector<int*> parts(kParts);
  for (int part = 0; part < kParts; ++part) {
    CHECK(cudaMallocAsync(&parts[part], kBytes, stream));
    CHECK(cudaMemcpyAsync(parts[part], host, kBytes, cudaMemcpyHostToDevice, stream));
    Increment<<<(kCount + 511) / 512, 512, 0, stream>>>(parts[part], part + 1, kCount);
  }
  for (int part = 1; part < kParts; ++part) {
    CHECK(cudaMemcpyAsync(parts[part], parts[part - 1], kBytes / 2, cudaMemcpyDeviceToDevice,
                          stream));
    CHECK(cudaMemsetAsync(parts[part] + kCount - 4, part, 4 * sizeof(int), stream));
  }
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end, stream));
  unsigned long spins = 0;
  while (cudaEventQuery(end) == cudaErrorNotReady) ++spins;
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  samples::Expect(milliseconds >= 0, "the time");
  for (int part = 0; part < kParts; ++part) {
    CHECK(cudaMemcpyAsync(host, parts[part], kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(parts[part], stream));
    CHECK(cudaStreamSynchronize(stream));
    samples::Report("part", part, std::vector<int>(host, host + kCount));
  }
  CHECK(cudaFreeHost(host));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return 0;
}
