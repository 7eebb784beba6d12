// Shared by the tests of the simulated libraries: a context, device memory with known contents,
// descriptors.
#pragma once

#include <cuda.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace spillway::simulator::dnn {

using Floats = std::vector<float>;

// `count` values between -1 and 1 that depend on the seed only.
inline Floats Values(std::int64_t count, std::uint32_t seed) {
  Floats values(count);
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

template <typename Element>
class Device {
 public:
  explicit Device(const std::vector<Element>& values) : count_(values.size()) {
    EXPECT_EQ(cuMemAlloc(&address_, SizeBytes()), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address_, values.data(), count_ * sizeof(Element)), CUDA_SUCCESS);
  }
  explicit Device(std::size_t count) : Device(std::vector<Element>(count)) {}
  ~Device() { cuMemFree(address_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Element* get() const { return reinterpret_cast<Element*>(address_); }
  std::vector<Element> Read() const {
    std::vector<Element> values(count_);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address_, count_ * sizeof(Element)), CUDA_SUCCESS);
    return values;
  }

 private:
  std::size_t SizeBytes() const { return std::max<std::size_t>(1, count_) * sizeof(Element); }
  std::size_t count_;
  CUdeviceptr address_ = 0;
};
using DeviceFloats = Device<float>;
using DeviceBytes = Device<unsigned char>;

inline void ExpectNear(const Floats& actual, const Floats& expected, float tolerance = 2e-5f) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i])))
        << "at " << i;
  }
}

// The primary context of device 0, current in the test's thread.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
};

class CudnnTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override { cudnnDestroy(handle_); }
  cudnnHandle_t handle_ = nullptr;
};

class TensorDesc {
 public:
  TensorDesc(std::vector<int> dims, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW,
             cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    EXPECT_EQ(cudnnCreateTensorDescriptor(&desc_), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetTensorNdDescriptorEx(desc_, format, type, static_cast<int>(dims.size()),
                                           dims.data()),
              CUDNN_STATUS_SUCCESS);
  }
  ~TensorDesc() { cudnnDestroyTensorDescriptor(desc_); }
  TensorDesc(const TensorDesc&) = delete;
  TensorDesc& operator=(const TensorDesc&) = delete;
  operator cudnnTensorDescriptor_t() const { return desc_; }

 private:
  cudnnTensorDescriptor_t desc_ = nullptr;
};

// NCHW values in NHWC order; with the dimensions exchanged, the inverse.
inline Floats ToChannelsLast(const Floats& from, int n, int c, int pixels) {
  Floats to(from.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < c; ++j) {
      for (int p = 0; p < pixels; ++p)
        to[(i * pixels + p) * c + j] = from[(i * c + j) * pixels + p];
    }
  }
  return to;
}

inline constexpr float kOne = 1;
inline constexpr float kZero = 0;

}  // namespace spillway::simulator::dnn
