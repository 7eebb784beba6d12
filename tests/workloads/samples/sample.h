// Shared by the sample programs: errors end the program, results are printed as checksums.
//
// Used by: each program of this folder, on its host. Knows the CUDA runtime only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace samples {

inline void Check(cudaError_t result, const char* what, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorString(result));
  std::exit(1);
}

// The same numbers in every run and on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  // Small whole numbers, so sums and products of them are exact in any order.
  float NextFloat() { return static_cast<float>(Next() % 17) - 8.0f; }

 private:
  std::uint32_t state_;
};

inline std::vector<float> RandomFloats(std::size_t count, std::uint32_t seed) {
  Numbers numbers(seed);
  std::vector<float> values(count);
  for (float& value : values) value = numbers.NextFloat();
  return values;
}

inline std::uint64_t Checksum(const void* data, std::size_t size_bytes) {
  std::uint64_t sum = 14695981039346656037ull;
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size_bytes; ++i) sum = (sum ^ bytes[i]) * 1099511628211ull;
  return sum;
}

template <typename T>
void Report(const char* what, int index, const std::vector<T>& values) {
  std::printf("%s %d %016llx\n", what, index,
              static_cast<unsigned long long>(Checksum(values.data(), values.size() * sizeof(T))));
}

template <typename T>
T* DeviceArray(std::size_t count) {
  T* memory = nullptr;
  Check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc", __LINE__);
  return memory;
}

template <typename T>
T* DeviceArray(const std::vector<T>& values) {
  T* const memory = DeviceArray<T>(values.size());
  Check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy", __LINE__);
  return memory;
}

template <typename T>
std::vector<T> HostCopy(const T* device, std::size_t count) {
  std::vector<T> values(count);
  Check(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy",
        __LINE__);
  return values;
}

// Ends the program with a message when a result is not what the host computed.
inline void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(2);
}

}  // namespace samples

#define CHECK(call) samples::Check(call, #call, __LINE__)
