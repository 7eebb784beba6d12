// A tensor of floats in device memory: a shape over a shared buffer.
//
// Used by: the layers, on the main thread. Copying a tensor shares its bytes.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdio>

#include "check.cuh"
#include "memory.cuh"

namespace workloads {

// Batch, channels, height, width: NCHW. A matrix is rows x columns x 1 x 1.
struct Shape {
  int n = 0, c = 1, h = 1, w = 1;

  std::size_t elements() const {
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(c) * static_cast<std::size_t>(h) *
           static_cast<std::size_t>(w);
  }
  std::size_t size_bytes() const { return elements() * sizeof(float); }
  bool operator==(const Shape& other) const {
    return n == other.n && c == other.c && h == other.h && w == other.w;
  }
};

struct Tensor {
  Shape shape;
  SharedBuffer buffer;

  float* data() const { return buffer->as<float>(); }
  std::size_t elements() const { return shape.elements(); }
  void reset() { buffer.reset(); }
};

inline Tensor persistent_tensor(Memory* memory, Shape shape) {
  return {shape, memory->persistent(shape.size_bytes())};
}

inline Tensor transient_tensor(Memory* memory, Shape shape) {
  return {shape, memory->transient(shape.size_bytes())};
}

// For --layers: the channels, height and width of a layer's result, and its weights' shape.
inline void print_layer(bool prints, Shape weights, Shape result) {
  if (!prints) return;
  std::fprintf(stderr, "layer %dx%dx%d by %dx%dx%dx%d\n", result.c, result.h, result.w, weights.n,
               weights.c, weights.h, weights.w);
}

class TensorDescriptor {
 public:
  explicit TensorDescriptor(Shape shape) {
    CHECK(cudnnCreateTensorDescriptor(&descriptor_));
    CHECK(cudnnSetTensor4dDescriptor(descriptor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, shape.n,
                                     shape.c, shape.h, shape.w));
  }
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;
  ~TensorDescriptor() { CHECK(cudnnDestroyTensorDescriptor(descriptor_)); }

  operator cudnnTensorDescriptor_t() const { return descriptor_; }

 private:
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

}  // namespace workloads
