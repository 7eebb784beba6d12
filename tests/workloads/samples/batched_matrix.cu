// A batch of small products whose matrices lie in separate allocations, passed by value in one
// struct.
#include "sample.h"

constexpr int kBatch = 6, kSize = 48;

struct Batch {
  const float* a[kBatch];
  const float* b[kBatch];
  float* c[kBatch];
  float scale;
};

__global__ void MultiplyBatch(Batch batch) {
  const int matrix = blockIdx.z;
  const int row = blockIdx.y * blockDim.y + threadIdx.y,
            column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < kSize; ++k)
    sum += batch.a[matrix][row * kSize + k] * batch.b[matrix][k * kSize + column];
  batch.c[matrix][row * kSize + column] = sum * batch.scale;
}

int main() {
  constexpr int kGroups = 5;
  constexpr std::size_t kFloats = 256 * 1024;  // a megabyte each, with the matrix at its beginning
  std::vector<Batch> groups(kGroups);
  for (int group = 0; group < kGroups; ++group) {
    groups[group].scale = 0.5f * static_cast<float>(group + 1);
    for (int i = 0; i < kBatch; ++i) {
      std::vector<float> values = samples::RandomFloats(kFloats, group * kBatch + i);
      groups[group].a[i] = samples::DeviceArray(values);
      groups[group].b[i] = samples::DeviceArray(values);
      groups[group].c[i] = samples::DeviceArray<float>(kFloats);
    }
  }
  const dim3 block(16, 16), grid(kSize / 16, kSize / 16, kBatch);
  for (int round = 0; round < 3; ++round) {
    for (const Batch& group : groups) MultiplyBatch<<<grid, block>>>(group);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  for (const Batch& group : groups) {
    for (int i = 0; i < kBatch; ++i) {
      samples::Report("product", i, samples::HostCopy(group.c[i], kSize * kSize));
      for (const float* memory : {group.a[i], group.b[i], static_cast<const float*>(group.c[i])}) {
        CHECK(cudaFree(const_cast<float*>(memory)));
      }
    }
  }
  return 0;
}
