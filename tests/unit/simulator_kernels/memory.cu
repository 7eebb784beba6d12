// Memory that kernels reach by other ways than pointers: cube maps, and a pipeline's copies into
// shared memory. Built like zoo.cu.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "checks.h"

namespace {

constexpr int kFaces = 6;
constexpr int kEdge = 4;
constexpr int kTexels = kFaces * kEdge * kEdge;

struct Direction {
  float x, y, z;
};

// The direction of texel (x, y) of a face, after the programming guide's table of cube maps.
__host__ __device__ Direction DirectionOf(int face, int x, int y) {
  const float s = (static_cast<float>(x) + 0.5f) / kEdge * 2 - 1;
  const float t = (static_cast<float>(y) + 0.5f) / kEdge * 2 - 1;
  switch (face) {
    case 0:
      return {1, -t, -s};
    case 1:
      return {-1, -t, s};
    case 2:
      return {s, 1, t};
    case 3:
      return {s, -1, -t};
    case 4:
      return {s, -t, 1};
    default:
      return {-s, -t, -1};
  }
}

__global__ void FetchCube(cudaTextureObject_t texture, float* out, float scale) {
  const int face = blockIdx.x, x = threadIdx.x, y = threadIdx.y;
  const Direction d = DirectionOf(face, x, y);
  out[(face * kEdge + y) * kEdge + x] =
      texCubemap<float>(texture, scale * d.x, scale * d.y, scale * d.z);
}

__global__ void FetchLayeredCube(cudaTextureObject_t texture, float* out, int layer) {
  const int face = blockIdx.x, x = threadIdx.x, y = threadIdx.y;
  const Direction d = DirectionOf(face, x, y);
  out[(face * kEdge + y) * kEdge + x] = texCubemapLayered<float>(texture, d.x, d.y, d.z, layer);
}

// Between texels of a face a linear filter averages; +x, between its two middle columns.
__global__ void FetchBetween(cudaTextureObject_t texture, float* out) {
  const Direction d = DirectionOf(0, 0, 1);
  *out = texCubemap<float>(texture, 1, d.y, 0);
}

class CubeMap {
 public:
  CubeMap(const std::vector<float>& texels, int layers, cudaTextureFilterMode filter) {
    const auto channel = cudaCreateChannelDesc<float>();
    const unsigned flags = cudaArrayCubemap | (layers > 1 ? cudaArrayLayered : 0);
    const auto depth = static_cast<std::size_t>(layers * kFaces);
    CHECK(cudaMalloc3DArray(&array_, &channel, make_cudaExtent(kEdge, kEdge, depth), flags));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr =
        make_cudaPitchedPtr(const_cast<float*>(texels.data()), kEdge * sizeof(float), kEdge, kEdge);
    copy.dstArray = array_;
    copy.extent = make_cudaExtent(kEdge, kEdge, depth);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    cudaTextureDesc description = {};
    for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
    description.filterMode = filter;
    description.normalizedCoords = 1;
    CHECK(cudaCreateTextureObject(&texture_, &resource, &description, nullptr));
  }
  ~CubeMap() {
    CHECK(cudaDestroyTextureObject(texture_));
    CHECK(cudaFreeArray(array_));
  }
  CubeMap(const CubeMap&) = delete;
  CubeMap& operator=(const CubeMap&) = delete;
  cudaTextureObject_t texture() const { return texture_; }

 private:
  cudaArray_t array_ = nullptr;
  cudaTextureObject_t texture_ = 0;
};

void TestCubeMaps() {
  const auto texels =
      Made<float>(2 * kTexels, [](std::size_t i) { return static_cast<float>(i * i % 97); });
  const std::vector<float> first(texels.begin(), texels.begin() + kTexels);
  const std::vector<float> second(texels.begin() + kTexels, texels.end());
  const dim3 face(kEdge, kEdge);
  Buffer<float> out((std::vector<float>(kTexels)));
  {
    const CubeMap cube(first, 1, cudaFilterModePoint);
    FetchCube<<<kFaces, face>>>(cube.texture(), out.get(), 1.0f);
    const bool good = out.Read() == first;
    FetchCube<<<kFaces, face>>>(cube.texture(), out.get(), 7.5f);
    Report("cube maps, directions of any length", good && out.Read() == first);
  }
  {
    const CubeMap cube(first, 1, cudaFilterModeLinear);
    FetchBetween<<<1, 1>>>(cube.texture(), out.get());
    Report("filtered cube maps", out.Read()[0] == (first[kEdge + 1] + first[kEdge + 2]) / 2);
  }
  const CubeMap cube(texels, 2, cudaFilterModePoint);
  FetchLayeredCube<<<kFaces, face>>>(cube.texture(), out.get(), 1);
  Report("layered cube maps", out.Read() == second);
}

// Two stages of a pipeline; the last thread has half an element less to copy.
__global__ void Piped(const int4* from, int4* to) {
  __shared__ int4 tiles[2][32];
  const unsigned lane = threadIdx.x;
  const std::size_t zeros = lane == 31 ? 8 : 0;
  for (int stage = 0; stage < 2; ++stage) {
    __pipeline_memcpy_async(&tiles[stage][lane], &from[stage * 32 + lane], sizeof(int4), zeros);
    __pipeline_commit();
  }
  for (int stage = 0; stage < 2; ++stage) {
    __pipeline_wait_prior(1 - stage);
    __syncthreads();
    to[stage * 32 + lane] = tiles[stage][31 - lane];
  }
}

void TestPipelines() {
  const auto from = Made<int4>(64, [](std::size_t i) {
    const int value = static_cast<int>(i);
    return make_int4(value, -value, 2 * value, 1);
  });
  std::vector<int4> expected(64);
  for (std::size_t i = 0; i < 64; ++i) expected[i] = from[i / 32 * 32 + 31 - i % 32];
  for (const std::size_t last : {0, 32}) expected[last].z = expected[last].w = 0;
  const Buffer<int4> source(from);
  const Buffer<int4> target((std::vector<int4>(64)));
  Piped<<<1, 32>>>(source.get(), target.get());
  const auto seen = target.Read();
  Report("cuda_pipeline.h", std::memcmp(seen.data(), expected.data(), 64 * sizeof(int4)) == 0);
}

}  // namespace

int main() {
  TestCubeMaps();
  TestPipelines();
  return Finish();
}
