// Random numbers by counter: the same (seed, stream, index) gives the same value on host and
// device, in any order.
//
// Used by: kernels that fill weights, host code that makes synthetic data and shuffles. Only
// integer arithmetic and one exact conversion, so every machine agrees on each bit.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace workloads {

__host__ __device__ inline std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

__host__ __device__ inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                                     std::uint64_t index) {
  return mix_bits(mix_bits(mix_bits(seed) ^ stream) ^ index);
}

// 24 random bits: exact in a float, at least 0 and less than 1.
__host__ __device__ inline float random_unit(std::uint64_t seed, std::uint64_t stream,
                                             std::uint64_t index) {
  return static_cast<float>(random_bits(seed, stream, index) >> 40) * 0x1p-24f;
}

}  // namespace workloads
