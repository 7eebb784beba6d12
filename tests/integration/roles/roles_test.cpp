// What the hooks of cuDNN and cuBLAS claim about a call's memory, and bytes that must stay.
#include <cublas_v2.h>
#include <cuda.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/statistics.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBudget = 64 * kMiB;
constexpr size_t kBytes = 8 * kMiB;
constexpr int kCount = kBytes / sizeof(float);

using spillway::test::Statistics;

class RolesTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_DRIVER", spillway::test::SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(kBudget).c_str(), 1);
    setenv("SPILLWAY_PARK", "off", 1);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cudnnCreate(&cudnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cublasCreate(&cublas_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateActivationDescriptor(&relu_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(
        cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0),
        CUDNN_STATUS_SUCCESS);
    packed_ = Tensor(kCount, 1);
    ASSERT_EQ(cuMemAlloc(&others_, 58 * kMiB), CUDA_SUCCESS);
    EvictAll();
  }
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), kBudget);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }

  // `count` elements at distances of `step`.
  static cudnnTensorDescriptor_t Tensor(int count, int step) {
    cudnnTensorDescriptor_t tensor = nullptr;
    EXPECT_EQ(cudnnCreateTensorDescriptor(&tensor), CUDNN_STATUS_SUCCESS);
    const int sizes[] = {1, 1, 1, count},
              strides[] = {count * step, count * step, count * step, step};
    EXPECT_EQ(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, sizes, strides),
              CUDNN_STATUS_SUCCESS);
    return tensor;
  }
  static float* Filled(float value, size_t bytes = kBytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    const std::vector<float> values(bytes / sizeof(float), value);
    EXPECT_EQ(cuMemcpyHtoD(address, values.data(), bytes), CUDA_SUCCESS);
    return reinterpret_cast<float*>(address);
  }
  // The buffer fills most of the budget. (A set overwrites it, so it is not restored.)
  void EvictAll() {
    ASSERT_EQ(cuMemsetD32(others_, 1, 58 * kMiB / 4), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  static std::vector<float> Read(const float* data, size_t bytes = kBytes) {
    std::vector<float> values(bytes / sizeof(float));
    EXPECT_EQ(cuMemcpyDtoH(values.data(), reinterpret_cast<CUdeviceptr>(data), bytes),
              CUDA_SUCCESS);
    return values;
  }
  static bool IsAll(const std::vector<float>& values, float value) {
    return std::all_of(values.begin(), values.end(), [value](float each) { return each == value; });
  }
  cudnnStatus_t Relu(cudnnTensorDescriptor_t x_is, const float* x, float beta,
                     cudnnTensorDescriptor_t y_is, float* y) {
    const float alpha = 1;
    return cudnnActivationForward(cudnn_, relu_, &alpha, x_is, x, &beta, y_is, y);
  }
  template <class Work>
  unsigned long long BytesRestoredBy(Work work) {
    const unsigned long long before = Statistics("h2d_bytes");
    work();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return Statistics("h2d_bytes") - before;
  }

  CUcontext context_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  cudnnActivationDescriptor_t relu_ = nullptr;
  cudnnTensorDescriptor_t packed_ = nullptr;
  CUdeviceptr others_ = 0;
};

TEST_F(RolesTest, OverwrittenOutputIsNotRestored) {
  float* const x = Filled(3);
  float* const y = Filled(-1);
  EvictAll();

  const unsigned long long bytes =
      BytesRestoredBy([&] { ASSERT_EQ(Relu(packed_, x, 0, packed_, y), CUDNN_STATUS_SUCCESS); });

  EXPECT_EQ(bytes, kBytes) << "the input alone";
  EXPECT_TRUE(IsAll(Read(y), 3));
}

TEST_F(RolesTest, RepeatedlyEvictedInputIsCopiedOutOnce) {
  // Given an input that was evicted, restored and read
  float* const x = Filled(3);
  float* const y = Filled(-1);
  EvictAll();
  ASSERT_EQ(Relu(packed_, x, 0, packed_, y), CUDNN_STATUS_SUCCESS);

  const unsigned long long before = Statistics("d2h_bytes");
  EvictAll();

  // Then only the output is copied out, and the input is unchanged
  EXPECT_EQ(Statistics("d2h_bytes") - before, kBytes);
  ASSERT_EQ(Relu(packed_, x, 0, packed_, y), CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(IsAll(Read(y), 3));
  EXPECT_TRUE(IsAll(Read(x), 3));
}

TEST_F(RolesTest, BytesBetweenAPaddedOutputsElementsStay) {
  // Given an allocation from an output's first element to its last one
  float* const x = Filled(3);
  const size_t bytes = kBytes - sizeof(float);
  float* const y = Filled(-1, bytes);
  EvictAll();

  ASSERT_EQ(Relu(Tensor(kCount / 2, 1), x, 0, Tensor(kCount / 2, 2), y), CUDNN_STATUS_SUCCESS);

  const std::vector<float> values = Read(y, bytes);
  for (int i = 0; i < kCount - 1; ++i) ASSERT_EQ(values[i], i % 2 ? -1 : 3) << i;
}

TEST_F(RolesTest, BlendedOutputIsRestored) {
  float* const x = Filled(3);
  float* const y = Filled(-1);
  EvictAll();

  ASSERT_EQ(Relu(packed_, x, 2, packed_, y), CUDNN_STATUS_SUCCESS);

  EXPECT_TRUE(IsAll(Read(y), 1));
}

TEST_F(RolesTest, InPlaceOutputIsRestored) {
  float* const x = Filled(3);
  EvictAll();

  ASSERT_EQ(Relu(packed_, x, 0, packed_, x), CUDNN_STATUS_SUCCESS);

  EXPECT_TRUE(IsAll(Read(x), 3));
  EvictAll();
  EXPECT_TRUE(IsAll(Read(x), 3));
}

TEST_F(RolesTest, BytesAroundAnOutputInALargerAllocationStay) {
  float* const x = Filled(3);
  float* const arena = Filled(-1, 2 * kBytes);
  EvictAll();

  ASSERT_EQ(Relu(packed_, x, 0, packed_, arena + kCount / 2), CUDNN_STATUS_SUCCESS);

  const std::vector<float> values = Read(arena, 2 * kBytes);
  for (int i = 0; i < 2 * kCount; ++i)
    ASSERT_EQ(values[i], i >= kCount / 2 && i < kCount / 2 + kCount ? 3 : -1) << i;
}

TEST_F(RolesTest, InputAndOutputInOneAllocationAreBothKept) {
  float* const arena = Filled(3, 2 * kBytes);
  EvictAll();

  ASSERT_EQ(Relu(packed_, arena, 0, packed_, arena + kCount), CUDNN_STATUS_SUCCESS);
  EvictAll();

  EXPECT_TRUE(IsAll(Read(arena, 2 * kBytes), 3));
}

TEST_F(RolesTest, RefusedCallChangesNothing) {
  float* const x = Filled(3);
  float* const y = Filled(-1);
  EvictAll();

  ASSERT_NE(Relu(packed_, x, 0, Tensor(kCount / 2, 1), y), CUDNN_STATUS_SUCCESS);

  EXPECT_TRUE(IsAll(Read(y), -1));
}

TEST_F(RolesTest, ProgramsOwnKernelHasNoClaims) {
  // Given an input that a call has read, and a set that writes to it afterwards
  float* const x = Filled(3);
  float* const y = Filled(-1);
  EvictAll();
  ASSERT_EQ(Relu(packed_, x, 0, packed_, y), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cuMemsetD32(reinterpret_cast<CUdeviceptr>(x + 7), 0, 1), CUDA_SUCCESS);

  EvictAll();

  EXPECT_EQ(Read(x)[7], 0);
  EXPECT_EQ(Read(x)[8], 3);
}

// C = A B, all of side 1536: 9 MiB each.
class ProductRolesTest : public RolesTest {
 protected:
  static constexpr int kSide = 1536;
  static constexpr size_t kMatrixBytes = size_t{kSide} * kSide * sizeof(float);
  cublasStatus_t Multiply(const float* a, const float* b, float beta, float* c, int rows = kSide,
                          int columns = kSide) {
    const float alpha = 1;
    return cublasSgemm(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, kSide, &alpha, a, kSide, b,
                       kSide, &beta, c, kSide);
  }
};

TEST_F(ProductRolesTest, WholeProductIsNotRestored) {
  float *const a = Filled(1, kMatrixBytes), *const b = Filled(1, kMatrixBytes),
               *const c = Filled(-1, kMatrixBytes);
  EvictAll();

  const unsigned long long bytes =
      BytesRestoredBy([&] { ASSERT_EQ(Multiply(a, b, 0, c), CUBLAS_STATUS_SUCCESS); });

  EXPECT_EQ(bytes, 2 * kMatrixBytes);
  EXPECT_TRUE(IsAll(Read(c, kMatrixBytes), kSide));
}

TEST_F(ProductRolesTest, BytesBelowAProductWithFewerRowsStay) {
  // Given an allocation that ends with the product's last element
  const size_t bytes = kMatrixBytes - sizeof(float);
  float *const a = Filled(1, kMatrixBytes), *const b = Filled(1, kMatrixBytes),
               *const c = Filled(-1, bytes);
  EvictAll();

  ASSERT_EQ(Multiply(a, b, 0, c, kSide - 1), CUBLAS_STATUS_SUCCESS);

  const std::vector<float> values = Read(c, bytes);
  EXPECT_EQ(values[kSide - 2], kSide);
  EXPECT_EQ(values[kSide - 1], -1);
}

TEST_F(ProductRolesTest, AccumulatedProductIsRestored) {
  float *const a = Filled(1, kMatrixBytes), *const b = Filled(1, kMatrixBytes),
               *const c = Filled(-1, kMatrixBytes);
  EvictAll();

  ASSERT_EQ(Multiply(a, b, 1, c), CUBLAS_STATUS_SUCCESS);

  EXPECT_TRUE(IsAll(Read(c, kMatrixBytes), kSide - 1));
}

TEST_F(ProductRolesTest, WithScalarsOnTheDeviceTheProductCountsAsAccumulated) {
  // Given factors in device memory, which the hook cannot read: an accumulation is possible
  float *const a = Filled(1, kMatrixBytes), *const b = Filled(1, kMatrixBytes),
               *const c = Filled(-1, kMatrixBytes);
  float* const one = Filled(1, 256);
  ASSERT_EQ(cublasSetPointerMode(cublas_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  EvictAll();

  ASSERT_EQ(cublasSgemm(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, one, a, kSide, b,
                        kSide, one, c, kSide),
            CUBLAS_STATUS_SUCCESS);

  EXPECT_TRUE(IsAll(Read(c, kMatrixBytes), kSide - 1));
}

TEST_F(ProductRolesTest, GapBetweenBatchesIsUnchanged) {
  // Given an allocation that ends with the last element of the second batch
  constexpr int kColumns = kSide / 2 - 1;
  constexpr long long kStride = 1LL * kSide * kSide / 2;
  constexpr size_t kEnd = (kStride + 1LL * kSide * kColumns) * sizeof(float);
  float *const a = Filled(1, kMatrixBytes), *const b = Filled(1, kMatrixBytes),
               *const c = Filled(-1, kEnd);
  EvictAll();
  const float one = 1, zero = 0;

  ASSERT_EQ(cublasSgemmStridedBatched(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kColumns, kSide,
                                      &one, a, kSide, 0, b, kSide, 0, &zero, c, kSide, kStride, 2),
            CUBLAS_STATUS_SUCCESS);

  const std::vector<float> values = Read(c, kEnd);
  EXPECT_EQ(values[0], kSide);
  EXPECT_EQ(values[kStride - 1], -1);
  EXPECT_EQ(values.back(), kSide);
}

TEST_F(ProductRolesTest, WeightsBeyondTheBudgetAreCopiedOutOnce) {
  // Given weights of 90 MiB that a network only reads, one after the other
  constexpr int kColumns = 8;
  constexpr size_t kStateBytes = size_t{kSide} * kColumns * sizeof(float);
  std::vector<float*> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(Filled(1.0f / kSide, kMatrixBytes));
  float* states[] = {Filled(1, kStateBytes), Filled(1, kStateBytes)};
  const auto pass = [&] {
    for (size_t i = 0; i < weights.size(); ++i)
      ASSERT_EQ(Multiply(weights[i], states[i % 2], 0, states[(i + 1) % 2], kSide, kColumns),
                CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  ASSERT_NO_FATAL_FAILURE(pass());

  const unsigned long long before = Statistics("d2h_bytes");
  const unsigned long long came_in = BytesRestoredBy([&] { ASSERT_NO_FATAL_FAILURE(pass()); });

  // Then the weights are only copied in
  EXPECT_GE(came_in, 4 * kMatrixBytes);
  EXPECT_EQ(Statistics("d2h_bytes"), before);
}

TEST(RoleEntryPointsTest, DlsymReturnsTheHookToo) {
  void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(dlsym(library, "cudnnActivationForward"),
            reinterpret_cast<void*>(&cudnnActivationForward));
  // A function without a hook is the library's own.
  EXPECT_EQ(dlsym(library, "cudnnCreate"), reinterpret_cast<void*>(&cudnnCreate));
  Dl_info hook, own;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&cudnnActivationForward), &hook), 0);
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&cudnnCreate), &own), 0);
  EXPECT_NE(hook.dli_fbase, own.dli_fbase);
}

}  // namespace
