// Work whose next part the host prepares inside the streams: host functions and callbacks between
// kernels.
#include <atomic>

#include "sample.h"

__global__ void Scale(int* values, const int* factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * *factor + i % 7;
}

struct Stage {
  int* factor;  // pinned: the host function writes it, a copy in the stream reads it
  int number;
  std::atomic<int>* order;
};

void CUDART_CB Prepare(void* data) {
  auto* stage = static_cast<Stage*>(data);
  *stage->factor = 2 + stage->number % 3;
  ++*stage->order;
}

void CUDART_CB Count(cudaStream_t, cudaError_t status, void* data) {
  samples::Expect(status == cudaSuccess, "the callback's status");
  ++*static_cast<std::atomic<int>*>(data);
}

int main() {
  constexpr int kStages = 12, kCount = 1 << 20;
  std::atomic<int> prepared{0}, finished{0};
  std::vector<cudaStream_t> streams(3);
  for (auto& stream : streams) CHECK(cudaStreamCreate(&stream));
  std::vector<Stage> stages(kStages);
  std::vector<int*> values, factors;
  int* pinned = nullptr;
  CHECK(cudaHostAlloc(&pinned, kStages * sizeof(int), cudaHostAllocDefault));
  for (int i = 0; i < kStages; ++i) {
    values.push_back(samples::DeviceArray<int>(kCount));
    factors.push_back(samples::DeviceArray<int>(1));
    CHECK(cudaMemset(values[i], i, kCount * sizeof(int)));
    stages[i] = {pinned + i, i, &prepared};
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kStages; ++i) {
      const cudaStream_t stream = streams[i % streams.size()];
      CHECK(cudaLaunchHostFunc(stream, Prepare, &stages[i]));
      CHECK(cudaMemcpyAsync(factors[i], stages[i].factor, sizeof(int), cudaMemcpyHostToDevice,
                            stream));
      Scale<<<(kCount + 255) / 256, 256, 0, stream>>>(values[i], factors[i], kCount);
      CHECK(cudaStreamAddCallback(stream, Count, &finished, 0));
    }
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  samples::Expect(prepared == 2 * kStages && finished == 2 * kStages, "the number of callbacks");
  for (int i = 0; i < kStages; ++i) {
    samples::Report("values", i, samples::HostCopy(values[i], kCount));
    CHECK(cudaFree(values[i]));
    CHECK(cudaFree(factors[i]));
  }
  CHECK(cudaFreeHost(pinned));
  for (const auto stream : streams) CHECK(cudaStreamDestroy(stream));
  return 0;
}
