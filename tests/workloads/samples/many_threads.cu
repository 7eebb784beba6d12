// Several host threads, each with a stream and memory of its own, allocating, launching and freeing
// at once.
#include <thread>

#include "sample.h"

__global__ void Blend(int* out, const int* in, int count, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = out[i] / 2 + in[count - 1 - i] + by;
}

void Work(int number, std::uint64_t* result) {
  constexpr int kArrays = 6, kCount = 1 << 19;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<int*> arrays(kArrays);
  std::vector<int> host(kCount);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kArrays; ++i) {
      CHECK(cudaMalloc(&arrays[i], kCount * sizeof(int)));
      CHECK(cudaMemsetAsync(arrays[i], number + i, kCount * sizeof(int), stream));
    }
    for (int step = 0; step < 2 * kArrays; ++step) {
      Blend<<<(kCount + 255) / 256, 256, 0, stream>>>(arrays[step % kArrays],
                                                      arrays[(step + 1) % kArrays], kCount, step);
    }
    CHECK(cudaGetLastError());
    for (int* array : arrays) {
      CHECK(cudaMemcpyAsync(host.data(), array, kCount * sizeof(int), cudaMemcpyDeviceToHost,
                            stream));
      CHECK(cudaStreamSynchronize(stream));
      *result = *result * 31 + samples::Checksum(host.data(), kCount * sizeof(int));
      CHECK(cudaFree(array));
    }
  }
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  constexpr int kThreads = 4;
  std::uint64_t results[kThreads] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(Work, i, &results[i]);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i)
    std::printf("thread %d %016llx\n", i, static_cast<unsigned long long>(results[i]));
  return 0;
}
