// A small program of the CUDA runtime, to check that its calls pass through Spillway's hooks
// (docs/gpu, item 5): three allocations, a hundred launches, one free. Knows nothing of
// Spillway.
//
// Prints one line of JSON with its calls and results. With --hold it then waits for a line on
// standard input, so that the device can be observed from outside.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLarge = 512 * kMiB, kMedium = 96 * kMiB, kSmall = 8 * kMiB;
constexpr int kLaunches = 100;

void Check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "runtime_program: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

unsigned* Allocate(std::size_t size_bytes) {
  unsigned* words = nullptr;
  Check(cudaMalloc(&words, size_bytes), "cudaMalloc");
  return words;
}

std::size_t FreeBytes() {
  std::size_t free_bytes = 0, total_bytes = 0;
  Check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return free_bytes;
}

}  // namespace

__global__ void runtime_program_add(unsigned* words, unsigned value, unsigned long long count) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i =
           static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += step)
    words[i] += value;
}

int main(int argc, char** argv) {
  Check(cudaFree(nullptr), "cudaFree");
  const std::size_t free_before = FreeBytes();
  unsigned* large = Allocate(kLarge);
  unsigned* medium = Allocate(kMedium);
  unsigned* small = Allocate(kSmall);
  Check(cudaMemset(small, 0, kSmall), "cudaMemset");
  for (int i = 0; i < kLaunches; ++i) runtime_program_add<<<4, 64>>>(small, 3, 1000);
  Check(cudaGetLastError(), "launch");
  unsigned last = 0;
  Check(cudaMemcpy(&last, small + 999, sizeof last, cudaMemcpyDeviceToHost), "cudaMemcpy");
  Check(cudaMemset(large, 1, kLarge), "cudaMemset");
  Check(cudaFree(medium), "cudaFree");
  Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf(
      "{\"result\": %u, \"allocations\": 3, \"frees\": 1, \"launches\": %d, \"peak_bytes\": %zu, "
      "\"live_bytes\": %zu, \"free_before_bytes\": %zu, \"free_after_bytes\": %zu}\n",
      last, kLaunches, kLarge + kMedium + kSmall, kLarge + kSmall, free_before, FreeBytes());
  std::fflush(stdout);
  if (argc > 1 && std::strcmp(argv[1], "--hold") == 0) std::getchar();
  return last == 3 * kLaunches ? 0 : 1;
}
