// A small training. Each iteration makes layers from layers, adds to a persistent sum, and frees
// all layers long after their last use. Each fifth one first reads one layer to the host, and adds
// another.
//
// Prints what it has read, and the sum's words at the end.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kIterations = 30;
constexpr int kLayers = 8;
constexpr std::size_t kBytes = std::size_t{16} << 20;
constexpr std::size_t kPartBytes = kBytes / kLayers;

void Check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "error %d\n", static_cast<int>(result));
  std::exit(1);
}

std::uint64_t Digest(CUdeviceptr from) {
  std::vector<std::uint32_t> words(kBytes / sizeof(std::uint32_t));
  Check(cuMemcpyDtoH(words.data(), from, kBytes));
  std::uint64_t digest = 0;
  for (const std::uint32_t word : words) digest = digest * 6364136223846793005u + word;
  return digest;
}

// Each layer adds a part of its own to the previous one.
std::vector<CUdeviceptr> Forward(int iteration) {
  std::vector<CUdeviceptr> layers(kLayers);
  Check(cuMemAlloc(&layers[0], kBytes));
  Check(cuMemsetD32Async(layers[0], static_cast<unsigned>(iteration), kBytes / 4, nullptr));
  for (int i = 1; i < kLayers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Check(cuMemAlloc(&layers[at], kBytes));
    Check(cuMemcpyDtoDAsync(layers[at], layers[at - 1], kBytes, nullptr));
    Check(cuMemsetD32Async(layers[at] + at * kPartBytes, static_cast<unsigned>(100 * iteration + i),
                           kPartBytes / 4, nullptr));
  }
  return layers;
}

void Iterate(CUdeviceptr sum, int iteration) {
  const std::vector<CUdeviceptr> layers = Forward(iteration);
  Check(cuMemcpyDtoDAsync(sum, layers.back() + kPartBytes, kPartBytes, nullptr));
  if (iteration % 5 == 4) {
    std::printf("iteration %d: %016llx %016llx\n", iteration,
                static_cast<unsigned long long>(Digest(layers[0])),
                static_cast<unsigned long long>(Digest(layers[2])));
    Check(cuMemcpyDtoDAsync(sum + kPartBytes, layers[1], kPartBytes, nullptr));
  }
  for (const CUdeviceptr layer : layers) Check(cuMemFree(layer));
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  Check(cuInit(0));
  Check(cuDevicePrimaryCtxRetain(&context, 0));
  Check(cuCtxSetCurrent(context));
  CUdeviceptr sum = 0;
  Check(cuMemAlloc(&sum, kBytes));
  Check(cuMemsetD32(sum, 1, kBytes / 4));
  for (int iteration = 0; iteration < kIterations; ++iteration) Iterate(sum, iteration);
  std::printf("sum %016llx\n", static_cast<unsigned long long>(Digest(sum)));
  return 0;
}
