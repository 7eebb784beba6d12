// Multiplies matrices tile by tile through shared memory, a chain of products of several matrices.
#include "sample.h"

constexpr int kTile = 16;

template <int kWidth>
__global__ void Multiply(float* c, const float* a, const float* b, int n) {
  __shared__ float a_tile[kWidth][kWidth];
  __shared__ float b_tile[kWidth][kWidth];
  const int row = blockIdx.y * kWidth + threadIdx.y, column = blockIdx.x * kWidth + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < n; at += kWidth) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * n + at + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = fmodf(sum, 8.0f);
}

int main() {
  // Small matrices at the front of large buffers: a CPU does the arithmetic, and the memory is what
  // matters.
  constexpr int kMatrices = 16, kSize = 64;
  constexpr std::size_t kFloats = std::size_t{1} << 20;
  std::vector<float*> matrices;
  for (int i = 0; i < kMatrices; ++i) {
    matrices.push_back(samples::DeviceArray<float>(kFloats));
    const std::vector<float> values = samples::RandomFloats(kSize * kSize, i);
    CHECK(cudaMemcpy(matrices[i], values.data(), values.size() * sizeof(float),
                     cudaMemcpyHostToDevice));
  }
  const dim3 block(kTile, kTile), grid(kSize / kTile, kSize / kTile);
  for (int step = 0; step < 3 * kMatrices; ++step) {
    Multiply<kTile><<<grid, block>>>(matrices[(step + 2) % kMatrices], matrices[step % kMatrices],
                                     matrices[(step + 1) % kMatrices], kSize);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kMatrices; ++i)
    samples::Report("matrix", i, samples::HostCopy(matrices[i], kSize * kSize));
  for (float* matrix : matrices) CHECK(cudaFree(matrix));
  return 0;
}
