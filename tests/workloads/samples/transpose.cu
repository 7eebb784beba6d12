// Transposes matrices through a padded tile of shared memory, there and back, and copies them by 2D
// copies.
#include <cooperative_groups.h>

#include "sample.h"

namespace cg = cooperative_groups;

constexpr int kTile = 32, kRows = 8;

__global__ void Transpose(float* out, const float* in, int width, int height) {
  __shared__ float tile[kTile][kTile + 1];
  const cg::thread_block block = cg::this_thread_block();
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows)
    tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
  cg::sync(block);
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows)
    out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
}

int main() {
  constexpr int kMatrices = 8, kWidth = 1024, kHeight = 512;
  std::vector<float*> matrices, transposed;
  for (int i = 0; i < kMatrices; ++i) {
    matrices.push_back(samples::DeviceArray(samples::RandomFloats(kWidth * kHeight, i)));
    transposed.push_back(samples::DeviceArray<float>(kWidth * kHeight));
  }
  const dim3 block(kTile, kRows);
  for (int i = 0; i < kMatrices; ++i) {
    Transpose<<<dim3(kWidth / kTile, kHeight / kTile), block>>>(transposed[i], matrices[i], kWidth,
                                                                kHeight);
  }
  // A quarter of each into the next one's corner.
  for (int i = 0; i + 1 < kMatrices; ++i) {
    CHECK(cudaMemcpy2D(transposed[i + 1], kHeight * sizeof(float), transposed[i],
                       kHeight * sizeof(float), kHeight / 2 * sizeof(float), kWidth / 2,
                       cudaMemcpyDeviceToDevice));
  }
  for (int i = 0; i < kMatrices; ++i) {
    Transpose<<<dim3(kHeight / kTile, kWidth / kTile), block>>>(matrices[i], transposed[i], kHeight,
                                                                kWidth);
  }
  CHECK(cudaGetLastError());
  for (int i = 0; i < kMatrices; ++i)
    samples::Report("matrix", i, samples::HostCopy(matrices[i], kWidth * kHeight));
  for (float* memory : matrices) CHECK(cudaFree(memory));
  for (float* memory : transposed) CHECK(cudaFree(memory));
  return 0;
}
