// Writes a volume, layers and a mipmapped pyramid through surfaces, and copies them out by 3D and
// array copies.
#include "sample.h"

constexpr int kSide = 64, kLayers = 6;

__global__ void FillVolume(cudaSurfaceObject_t volume, float scale) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  surf3Dwrite(scale * (x + 10 * y + 100 * z), volume, x * static_cast<int>(sizeof(float)), y, z);
}

__global__ void AddToLayers(cudaSurfaceObject_t layers, const float* values) {
  const int x = threadIdx.x, y = blockIdx.x, layer = blockIdx.y;
  const int at = x * static_cast<int>(sizeof(float));
  const float before = surf2DLayeredread<float>(layers, at, y, layer);
  surf2DLayeredwrite(before + values[(layer * kSide + y) * kSide + x], layers, at, y, layer);
}

// Each pixel of a level is the sum of four of the level below.
__global__ void Shrink(cudaSurfaceObject_t out, cudaSurfaceObject_t in) {
  const int x = threadIdx.x, y = blockIdx.x;
  constexpr int kBytes = sizeof(float);
  float sum = 0;
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 2; ++i) sum += surf2Dread<float>(in, (2 * x + i) * kBytes, 2 * y + j);
  }
  surf2Dwrite(sum, out, x * kBytes, y);
}

__global__ void Scatter(float* out, const float* in, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    out[i] = in[i % (kSide * kSide)] + i % 3;
  }
}

cudaSurfaceObject_t SurfaceOver(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

// All of a volume (or its layers) as packed floats in device memory.
float* Packed(cudaArray_t array, int depth) {
  float* const memory = samples::DeviceArray<float>(kSide * kSide * depth);
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(memory, kSide * sizeof(float), kSide, kSide);
  copy.extent = make_cudaExtent(kSide, kSide, depth);
  copy.kind = cudaMemcpyDeviceToDevice;
  CHECK(cudaMemcpy3D(&copy));
  return memory;
}

int main() {
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  cudaArray_t volume = nullptr, layers = nullptr;
  CHECK(cudaMalloc3DArray(&volume, &floats, make_cudaExtent(kSide, kSide, kSide),
                          cudaArraySurfaceLoadStore));
  CHECK(cudaMalloc3DArray(&layers, &floats, make_cudaExtent(kSide, kSide, kLayers),
                          cudaArrayLayered | cudaArraySurfaceLoadStore));
  const cudaSurfaceObject_t volume_surface = SurfaceOver(volume),
                            layer_surface = SurfaceOver(layers);
  FillVolume<<<dim3(kSide, kSide), kSide>>>(volume_surface, 0.5f);

  // The volume's first slices become the layers.
  cudaMemcpy3DParms between{};
  between.srcArray = volume;
  between.dstArray = layers;
  between.extent = make_cudaExtent(kSide, kSide, kLayers);
  between.kind = cudaMemcpyDeviceToDevice;
  CHECK(cudaMemcpy3D(&between));
  float* const values = samples::DeviceArray(samples::RandomFloats(kSide * kSide * kLayers, 4));
  AddToLayers<<<dim3(kSide, kLayers), kSide>>>(layer_surface, values);

  cudaMipmappedArray_t pyramid = nullptr;
  CHECK(cudaMallocMipmappedArray(&pyramid, &floats, make_cudaExtent(kSide, kSide, 0), 4,
                                 cudaArraySurfaceLoadStore));
  cudaArray_t base = nullptr;
  CHECK(cudaGetMipmappedArrayLevel(&base, pyramid, 0));
  const std::vector<float> pixels = samples::RandomFloats(kSide * kSide, 5);
  CHECK(cudaMemcpy2DToArray(base, 0, 0, pixels.data(), kSide * sizeof(float), kSide * sizeof(float),
                            kSide, cudaMemcpyHostToDevice));
  std::vector<cudaSurfaceObject_t> levels = {SurfaceOver(base)};
  for (int level = 1; level < 4; ++level) {
    cudaArray_t array = nullptr;
    CHECK(cudaGetMipmappedArrayLevel(&array, pyramid, level));
    levels.push_back(SurfaceOver(array));
    const int side = kSide >> level;
    Shrink<<<side, side>>>(levels[level], levels[level - 1]);
  }
  cudaArray_t top = nullptr;
  CHECK(cudaGetMipmappedArrayLevel(&top, pyramid, 3));
  std::vector<float> peak(64);
  CHECK(cudaMemcpy2DFromArray(peak.data(), 8 * sizeof(float), top, 0, 0, 8 * sizeof(float), 8,
                              cudaMemcpyDeviceToHost));
  samples::Report("pyramid", 3, peak);

  constexpr int kBuffers = 12, kCount = 1 << 20;
  float* const packed = Packed(volume, kSide);
  float* const packed_layers = Packed(layers, kLayers);
  std::vector<float*> buffers;
  for (int i = 0; i < kBuffers; ++i) {
    buffers.push_back(samples::DeviceArray<float>(kCount));
    Scatter<<<64, 256>>>(buffers[i], packed + i * kSide * kSide, kCount);
  }
  CHECK(cudaGetLastError());
  samples::Report("volume", 0, samples::HostCopy(packed, kSide * kSide * kSide));
  samples::Report("layers", 0, samples::HostCopy(packed_layers, kSide * kSide * kLayers));
  for (int i = 0; i < kBuffers; ++i)
    samples::Report("buffer", i, samples::HostCopy(buffers[i], kCount));

  for (const cudaSurfaceObject_t surface : levels) CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaDestroySurfaceObject(volume_surface));
  CHECK(cudaDestroySurfaceObject(layer_surface));
  CHECK(cudaFreeMipmappedArray(pyramid));
  CHECK(cudaFreeArray(volume));
  CHECK(cudaFreeArray(layers));
  for (float* memory : {packed, packed_layers, values}) CHECK(cudaFree(memory));
  for (float* memory : buffers) CHECK(cudaFree(memory));
  return 0;
}
