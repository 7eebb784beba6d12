// Rotates an image in a CUDA array by filtered texture fetches, and looks up results through
// textures over linear and pitched memory.
#include "sample.h"

constexpr int kSide = 1024;

__global__ void Rotate(float* out, cudaTextureObject_t image, float cosine, float sine) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const float u = (x + 0.5f) / kSide - 0.5f, v = (y + 0.5f) / kSide - 0.5f;
  out[y * kSide + x] =
      tex2D<float>(image, u * cosine - v * sine + 0.5f, v * cosine + u * sine + 0.5f);
}

// out[i] = table[i's pixel] + the row's first element
__global__ void LookUp(float* out, const float* pixels, cudaTextureObject_t table,
                       cudaTextureObject_t rows) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int index = static_cast<int>(pixels[y * kSide + x] + 8.0f);
  out[y * kSide + x] = tex1Dfetch<float>(table, index) + tex2D<float>(rows, 0.5f, y + 0.5f);
}

cudaTextureObject_t TextureOver(const cudaResourceDesc& resource, cudaTextureFilterMode filter,
                                bool normalized) {
  cudaTextureDesc sampling{};
  sampling.addressMode[0] = normalized ? cudaAddressModeWrap : cudaAddressModeClamp;
  sampling.addressMode[1] = sampling.addressMode[0];
  sampling.filterMode = filter;
  sampling.readMode = cudaReadModeElementType;
  sampling.normalizedCoords = normalized;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  return texture;
}

cudaArray_t ImageArray(const std::vector<float>& pixels) {
  const cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  CHECK(cudaMallocArray(&array, &channels, kSide, kSide));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, pixels.data(), kSide * sizeof(float),
                            kSide * sizeof(float), kSide, cudaMemcpyHostToDevice));
  return array;
}

int main() {
  constexpr int kAngles = 16;
  constexpr float kCosines[] = {1.0f, 0.8f, 0.6f, 0.0f}, kSines[] = {0.0f, 0.6f, 0.8f, 1.0f};
  const dim3 block(32, 8), grid(kSide / 32, kSide / 8);

  cudaArray_t array = ImageArray(samples::RandomFloats(kSide * kSide, 1));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  const cudaTextureObject_t image = TextureOver(resource, cudaFilterModeLinear, true);

  float* const table = samples::DeviceArray(samples::RandomFloats(64, 2));
  cudaResourceDesc line{};
  line.resType = cudaResourceTypeLinear;
  line.res.linear.devPtr = table;
  line.res.linear.desc = cudaCreateChannelDesc<float>();
  line.res.linear.sizeInBytes = 64 * sizeof(float);
  const cudaTextureObject_t lookup = TextureOver(line, cudaFilterModePoint, false);

  const std::vector<float> firsts = samples::RandomFloats(kSide * 16, 3);
  cudaResourceDesc plane{};
  plane.resType = cudaResourceTypePitch2D;
  plane.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  plane.res.pitch2D.width = 16;
  plane.res.pitch2D.height = kSide;
  void* pitched = nullptr;
  CHECK(cudaMallocPitch(&pitched, &plane.res.pitch2D.pitchInBytes, 16 * sizeof(float), kSide));
  plane.res.pitch2D.devPtr = pitched;
  CHECK(cudaMemcpy2D(pitched, plane.res.pitch2D.pitchInBytes, firsts.data(), 16 * sizeof(float),
                     16 * sizeof(float), kSide, cudaMemcpyHostToDevice));
  const cudaTextureObject_t rows = TextureOver(plane, cudaFilterModePoint, false);

  std::vector<float*> rotated, found;
  for (int i = 0; i < kAngles; ++i) {
    rotated.push_back(samples::DeviceArray<float>(kSide * kSide));
    Rotate<<<grid, block>>>(rotated[i], image, kCosines[i % 4], kSines[(i / 4) % 4]);
  }
  for (int i = 0; i < kAngles; ++i) {
    found.push_back(samples::DeviceArray<float>(kSide * kSide));
    LookUp<<<grid, block>>>(found[i], rotated[i], lookup, rows);
  }
  CHECK(cudaGetLastError());
  for (int i = 0; i < kAngles; ++i)
    samples::Report("image", i, samples::HostCopy(found[i], kSide * kSide));

  for (const cudaTextureObject_t texture : {image, lookup, rows})
    CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(table));
  CHECK(cudaFree(pitched));
  for (float* memory : rotated) CHECK(cudaFree(memory));
  for (float* memory : found) CHECK(cudaFree(memory));
  return 0;
}
