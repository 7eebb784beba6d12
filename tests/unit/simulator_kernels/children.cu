// Kernels that launch kernels. Built by simkernels --host: nvcc would need its device library.
#include <cuda_runtime.h>

#include <vector>

#include "checks.h"

__global__ void Mark(int* out, int at, int value = 1) { out[at] += value; }

// Launches itself with half of the range twice, down to single elements.
__global__ void Halves(int* out, int first, int count) {
  if (count == 1) {
    out[first] += first;
    return;
  }
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Halves<<<1, 1, 0, stream>>>(out, first, count / 2);
  cudaStreamDestroy(stream);
  Halves<<<1, 1>>>(out, first + count / 2, count - count / 2);
}

// The order of a block's launches, and of a tail launch after all of them.
__device__ int steps;
__global__ void Step(int* out, int at) { out[at] = ++steps; }
__global__ void Ordered(int* out) {
  Step<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 0);
  Step<<<1, 1>>>(out, 1);
  Step<<<1, 1>>>(out, 2);
  out[3] = steps;
}

__global__ void Allocates(int** kept) {
  cudaMalloc(reinterpret_cast<void**>(kept), 64 * sizeof(int));
  (*kept)[3] = 2;
  Mark<<<1, 1>>>(*kept, 3, 5);
}
__global__ void Reads(int** kept, int* out) {
  *out = (*kept)[3];
  cudaFree(*kept);
}

int main() {
  Buffer<int> out(std::vector<int>(37));
  Halves<<<1, 1>>>(out.get(), 0, 37);
  bool good = true;
  const auto seen = out.Read();
  for (int i = 0; i < 37; ++i) good = good && seen[i] == i;
  Report("recursive launches", good);

  Ordered<<<1, 1>>>(out.get());
  const auto order = out.Read();
  Report("order of a kernel's launches",
         order[0] == 3 && order[1] == 1 && order[2] == 2 && order[3] == 0);

  Buffer<int*> kept({nullptr});
  Allocates<<<1, 1>>>(kept.get());
  Reads<<<1, 1>>>(kept.get(), out.get());
  Report("memory that a kernel allocates", out.Read()[0] == 7);
  return Finish();
}
