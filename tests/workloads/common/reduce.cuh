// Sums and maxima over a warp and over a block, in a fixed order.
//
// Used by: kernels; every thread of the warp or block must call, and all get the result.
// Invariant: block_reduce needs blockDim.x to be a multiple of 32, at most 1024, and no other
// thread dimension.
#pragma once

#include <cuda_runtime.h>

namespace workloads {

struct Sum {
  static constexpr float kNeutral = 0.0f;
  __device__ static float combine(float a, float b) { return a + b; }
};

struct Maximum {
  static constexpr float kNeutral = -3.0e38f;
  __device__ static float combine(float a, float b) { return a > b ? a : b; }
};

template <typename Operation>
__device__ inline float warp_reduce(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Operation::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

template <typename Operation>
__device__ inline float block_reduce(float value) {
  __shared__ float partial[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  value = warp_reduce<Operation>(value);
  __syncthreads();
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  return warp_reduce<Operation>(lane < warps ? partial[lane] : Operation::kNeutral);
}

}  // namespace workloads
