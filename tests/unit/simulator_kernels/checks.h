// What the programs of kernels share: checked calls, device buffers, and a line per feature.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

namespace {

int failures = 0;

void Report(const char* name, bool good) {
  std::printf("%s %s\n", good ? "ok" : "BAD", name);
  if (!good) ++failures;
}

void Check(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::printf("BAD line %d: %s\n", line, cudaGetErrorName(error));
  ++failures;
}
#define CHECK(call) Check(call, __LINE__)

template <typename T>
class Buffer {
 public:
  explicit Buffer(const std::vector<T>& values) : count_(values.size()) {
    CHECK(cudaMalloc(&data_, count_ * sizeof(T)));
    CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Buffer() { CHECK(cudaFree(data_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

template <typename T>
std::vector<T> Made(std::size_t count, const std::function<T(std::size_t)>& make) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = make(i);
  return values;
}

}  // namespace

// The end of main().
inline int Finish() {
  CHECK(cudaDeviceSynchronize());
  std::printf("%s\n", failures ? "FAILED" : "passed");
  return failures != 0;
}
