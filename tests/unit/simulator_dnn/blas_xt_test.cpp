// cublasXt: products of matrices in host memory, tile by tile.
#include <cublasXt.h>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kM = 7, kN = 5, kK = 9, kLeading = 11;

float At(const Floats& matrix, bool turned, int row, int column) {
  return turned ? matrix[row * kLeading + column] : matrix[column * kLeading + row];
}

class CublasXtTest : public GpuTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    int device = 0;
    ASSERT_EQ(cublasXtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasXtDeviceSelect(handle_, 1, &device), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasXtSetBlockDim(handle_, GetParam()), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cublasXtDestroy(handle_), CUBLAS_STATUS_SUCCESS); }

  // Rows below the matrices' own stay as they are.
  Floats Expected(bool turns_a, bool turns_b, float alpha, float beta) const {
    Floats c = c_;
    for (int column = 0; column < kN; ++column) {
      for (int row = 0; row < kM; ++row) {
        float sum = 0;
        for (int k = 0; k < kK; ++k) sum += At(a_, turns_a, row, k) * At(b_, turns_b, k, column);
        c[column * kLeading + row] = alpha * sum + beta * c_[column * kLeading + row];
      }
    }
    return c;
  }

  const Floats a_ = Values(kLeading * kLeading, 1), b_ = Values(kLeading * kLeading, 2),
               c_ = Values(kLeading * kN, 3);
  cublasXtHandle_t handle_ = nullptr;
};

TEST_P(CublasXtTest, MultipliesInHostMemory) {
  const float alpha = 1.5f;
  for (const bool turns_a : {false, true}) {
    for (const bool turns_b : {false, true}) {
      for (const float beta : {0.0f, 0.5f}) {
        Floats c = c_;
        EXPECT_EQ(cublasXtSgemm(handle_, turns_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                turns_b ? CUBLAS_OP_T : CUBLAS_OP_N, kM, kN, kK, &alpha, a_.data(),
                                kLeading, b_.data(), kLeading, &beta, c.data(), kLeading),
                  CUBLAS_STATUS_SUCCESS);
        ExpectNear(c, Expected(turns_a, turns_b, alpha, beta));
      }
    }
  }
}

TEST_P(CublasXtTest, MultipliesInDeviceMemory) {
  const float alpha = 2, beta = -1;
  const DeviceFloats a(a_), b(b_), c(c_);
  EXPECT_EQ(cublasXtSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK, &alpha, a.get(), kLeading,
                          b.get(), kLeading, &beta, c.get(), kLeading),
            CUBLAS_STATUS_SUCCESS);
  ExpectNear(c.Read(), Expected(false, true, alpha, beta));
}

TEST_P(CublasXtTest, AnEmptyDepthScales) {
  const float alpha = 2, beta = 0.5f;
  Floats c = c_, expected = c_;
  for (int column = 0; column < kN; ++column) {
    for (int row = 0; row < kM; ++row) expected[column * kLeading + row] *= beta;
  }
  EXPECT_EQ(cublasXtSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, 0, &alpha, a_.data(), kLeading,
                          b_.data(), kLeading, &beta, c.data(), kLeading),
            CUBLAS_STATUS_SUCCESS);
  ExpectNear(c, expected);
}

TEST_P(CublasXtTest, ShortColumnsAreInvalid) {
  const float one = 1;
  Floats c = c_;
  EXPECT_EQ(cublasXtSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one, a_.data(), kM - 1,
                          b_.data(), kLeading, &one, c.data(), kLeading),
            CUBLAS_STATUS_INVALID_VALUE);
  int tile = 0;
  EXPECT_EQ(cublasXtGetBlockDim(handle_, &tile), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(tile, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Tiles, CublasXtTest, testing::Values(2, 4, 64));

}  // namespace
}  // namespace spillway::simulator::dnn
