// Running sums: within blocks, of the blocks' totals, and the two put together, in place and with
// pitched rows.
#include "sample.h"

constexpr int kThreads = 256;

__global__ void ScanBlocks(const unsigned* in, unsigned* out, unsigned* totals, int count) {
  __shared__ unsigned sums[2][kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  int now = 0;
  sums[now][threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const unsigned before =
        static_cast<int>(threadIdx.x) >= distance ? sums[now][threadIdx.x - distance] : 0;
    sums[1 - now][threadIdx.x] = sums[now][threadIdx.x] + before;
    now = 1 - now;
    __syncthreads();
  }
  if (i < count) out[i] = sums[now][threadIdx.x];
  if (totals && threadIdx.x == kThreads - 1) totals[blockIdx.x] = sums[now][threadIdx.x];
}

__global__ void AddTotals(unsigned* out, const unsigned* totals, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x > 0 && i < count) out[i] += totals[blockIdx.x - 1];
}

int main() {
  constexpr int kRows = 24, kCount = kThreads * kThreads;
  std::size_t pitch_bytes = 0;
  std::vector<unsigned*> inputs, outputs;
  for (int row = 0; row < kRows; ++row) {
    unsigned* rows = nullptr;
    CHECK(cudaMallocPitch(&rows, &pitch_bytes, kCount * sizeof(unsigned), 8));
    inputs.push_back(rows);
    outputs.push_back(samples::DeviceArray<unsigned>(kCount * 8));
    CHECK(cudaMemset2D(rows, pitch_bytes, row % 5 + 1, kCount * sizeof(unsigned), 8));
  }
  unsigned* const totals = samples::DeviceArray<unsigned>(kThreads);
  unsigned* const running = samples::DeviceArray<unsigned>(kThreads);
  for (int row = 0; row < kRows; ++row) {
    ScanBlocks<<<kThreads, kThreads>>>(inputs[row], outputs[row], totals, kCount);
    ScanBlocks<<<1, kThreads>>>(totals, running, nullptr, kThreads);
    AddTotals<<<kThreads, kThreads>>>(outputs[row], running, kCount);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  for (int row = 0; row < kRows; ++row) {
    const std::vector<unsigned> sums = samples::HostCopy(outputs[row], kCount);
    const unsigned first = 0x01010101u * static_cast<unsigned>(row % 5 + 1);
    samples::Expect(sums.back() == first * static_cast<unsigned>(kCount), "the last running sum");
    samples::Report("row", row, sums);
    CHECK(cudaFree(inputs[row]));
    CHECK(cudaFree(outputs[row]));
  }
  CHECK(cudaFree(totals));
  CHECK(cudaFree(running));
  return 0;
}
