// Streams that copy in, compute and copy out concurrently, ordered among each other by events.
#include "sample.h"

__global__ void Step(float* values, const float* before, int count, int repeat) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = values[i];
  for (int r = 0; r < repeat; ++r) value = fmodf(value * 3.0f + before[i], 1024.0f);
  values[i] = value;
}

int main() {
  constexpr int kStreams = 4, kChunks = 16, kCount = 1 << 20;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  float *in = nullptr, *out = nullptr;
  CHECK(cudaMallocHost(&in, kChunks * kBytes));
  CHECK(cudaMallocHost(&out, kChunks * kBytes));
  samples::Numbers numbers(7);
  for (int i = 0; i < kChunks * kCount; ++i) in[i] = numbers.NextFloat();

  std::vector<cudaStream_t> streams(kStreams);
  std::vector<cudaEvent_t> done(kChunks);
  std::vector<float*> chunks(kChunks);
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (auto& event : done) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (auto& chunk : chunks) chunk = samples::DeviceArray<float>(kCount);

  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const cudaStream_t stream = streams[chunk % kStreams];
    CHECK(cudaMemcpyAsync(chunks[chunk], in + chunk * kCount, kBytes, cudaMemcpyHostToDevice,
                          stream));
    const int before = chunk == 0 ? 0 : chunk - 1;
    if (chunk > 0) CHECK(cudaStreamWaitEvent(stream, done[before], 0));
    Step<<<(kCount + 255) / 256, 256, 0, stream>>>(chunks[chunk], chunks[before], kCount, 3);
    CHECK(cudaEventRecord(done[chunk], stream));
    CHECK(cudaMemcpyAsync(out + chunk * kCount, chunks[chunk], kBytes, cudaMemcpyDeviceToHost,
                          stream));
  }
  CHECK(cudaGetLastError());
  for (const auto stream : streams) CHECK(cudaStreamSynchronize(stream));
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    samples::Report("chunk", chunk,
                    std::vector<float>(out + chunk * kCount, out + (chunk + 1) * kCount));
  }
  for (float* chunk : chunks) CHECK(cudaFree(chunk));
  for (const auto event : done) CHECK(cudaEventDestroy(event));
  for (const auto stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
  return 0;
}
