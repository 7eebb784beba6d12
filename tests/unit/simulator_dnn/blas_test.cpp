// cuBLAS against loops in double precision.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

class CublasTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override { cublasDestroy(handle_); }
  cublasHandle_t handle_ = nullptr;
};

// Column-major, with leading dimensions larger than the matrices.
constexpr int kM = 7, kN = 5, kK = 9;
constexpr int kLead = 12;
constexpr int kMatrix = kLead * 12;
constexpr float kAlpha = 1.25f, kBeta = -0.5f;

template <typename Real>
std::vector<Real> Product(cublasOperation_t ta, cublasOperation_t tb, const std::vector<Real>& a,
                          const std::vector<Real>& b, const std::vector<Real>& c, double alpha,
                          double beta) {
  std::vector<Real> result = c;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int p = 0; p < kK; ++p) {
        const double left = a[ta == CUBLAS_OP_N ? p * kLead + i : i * kLead + p];
        const double right = b[tb == CUBLAS_OP_N ? j * kLead + p : p * kLead + j];
        sum += left * right;
      }
      result[j * kLead + i] = static_cast<Real>(alpha * sum + beta * double(c[j * kLead + i]));
    }
  }
  return result;
}

struct TransposeCase {
  cublasOperation_t a, b;
};
class GemmTest : public CublasTest, public testing::WithParamInterface<TransposeCase> {};

TEST_P(GemmTest, FloatMatchesTheDefinitionAndKeepsTheGaps) {
  const Floats a_values = Values(kMatrix, 1), b_values = Values(kMatrix, 2),
               c_values = Values(kMatrix, 3);
  const DeviceFloats a(a_values), b(b_values), c(c_values);
  ASSERT_EQ(cublasSgemm(handle_, GetParam().a, GetParam().b, kM, kN, kK, &kAlpha, a.get(), kLead,
                        b.get(), kLead, &kBeta, c.get(), kLead),
            CUBLAS_STATUS_SUCCESS);
  ExpectNear(c.Read(),
             Product(GetParam().a, GetParam().b, a_values, b_values, c_values, kAlpha, kBeta));
}

TEST_P(GemmTest, DoubleKeepsDoublePrecision) {
  const Floats seed = Values(kMatrix, 1);
  const std::vector<double> values(seed.begin(), seed.end());
  const Device<double> a(values), b(values), c(values);
  const double alpha = 1.0 / 3, beta = 0.7;
  ASSERT_EQ(cublasDgemm(handle_, GetParam().a, GetParam().b, kM, kN, kK, &alpha, a.get(), kLead,
                        b.get(), kLead, &beta, c.get(), kLead),
            CUBLAS_STATUS_SUCCESS);
  const std::vector<double> expected =
      Product(GetParam().a, GetParam().b, values, values, values, alpha, beta);
  const std::vector<double> actual = c.Read();
  for (int i = 0; i < kMatrix; ++i) ASSERT_NEAR(actual[i], expected[i], 1e-14);
}

TEST_P(GemmTest, HalfInputsGiveFloatResults) {
  const Floats a_values = Values(kMatrix, 1), b_values = Values(kMatrix, 2),
               c_values = Values(kMatrix, 3);
  std::vector<__half> a_half, b_half;
  Floats a_rounded, b_rounded;
  for (int i = 0; i < kMatrix; ++i) {
    a_half.push_back(__float2half(a_values[i]));
    b_half.push_back(__float2half(b_values[i]));
    a_rounded.push_back(__half2float(a_half.back()));
    b_rounded.push_back(__half2float(b_half.back()));
  }
  const Device<__half> a(a_half), b(b_half);
  const DeviceFloats c(c_values);
  ASSERT_EQ(cublasGemmEx(handle_, GetParam().a, GetParam().b, kM, kN, kK, &kAlpha, a.get(),
                         CUDA_R_16F, kLead, b.get(), CUDA_R_16F, kLead, &kBeta, c.get(), CUDA_R_32F,
                         kLead, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  ExpectNear(c.Read(),
             Product(GetParam().a, GetParam().b, a_rounded, b_rounded, c_values, kAlpha, kBeta));
}

INSTANTIATE_TEST_SUITE_P(Transposes, GemmTest,
                         testing::Values(TransposeCase{CUBLAS_OP_N, CUBLAS_OP_N},
                                         TransposeCase{CUBLAS_OP_N, CUBLAS_OP_T},
                                         TransposeCase{CUBLAS_OP_T, CUBLAS_OP_N},
                                         TransposeCase{CUBLAS_OP_T, CUBLAS_OP_T}));

TEST_F(CublasTest, HalfGemmTakesHalfScalars) {
  // 2 x 2 matrices whose results are exact in half.
  const __half alpha = __float2half(2.0f), beta = __float2half(1.0f);
  const auto halves = [](Floats values) {
    std::vector<__half> result;
    for (const float value : values) result.push_back(__float2half(value));
    return result;
  };
  const Device<__half> a(halves({1, 2, 3, 4})), b(halves({1, 0, 0, 1})),
      c(halves({10, 20, 30, 40}));
  ASSERT_EQ(cublasHgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, a.get(), 2, b.get(), 2,
                        &beta, c.get(), 2),
            CUBLAS_STATUS_SUCCESS);
  Floats actual;
  for (const __half value : c.Read()) actual.push_back(__half2float(value));
  EXPECT_EQ(actual, (Floats{12, 24, 36, 48}));
}

TEST_F(CublasTest, BetaZeroDoesNotReadTheResult) {
  const DeviceFloats a(Values(kMatrix, 1)), b(Values(kMatrix, 2)), c(Floats(kMatrix, NAN));
  const float zero = 0;
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kAlpha, a.get(), kLead,
                        b.get(), kLead, &zero, c.get(), kLead),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_FALSE(std::isnan(c.Read()[0]));
  EXPECT_TRUE(std::isnan(c.Read()[kLead - 1]));  // the gap below the first column
}

TEST_F(CublasTest, DeviceScalarsAreReadWhenTheProductRuns) {
  const Floats a_values = Values(kMatrix, 1), b_values = Values(kMatrix, 2),
               c_values = Values(kMatrix, 3);
  const DeviceFloats a(a_values), b(b_values), c(c_values);
  const DeviceFloats scalars(Floats{2.0f, 3.0f});
  cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE);
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, scalars.get(), a.get(),
                        kLead, b.get(), kLead, scalars.get() + 1, c.get(), kLead),
            CUBLAS_STATUS_SUCCESS);
  ExpectNear(c.Read(), Product(CUBLAS_OP_N, CUBLAS_OP_N, a_values, b_values, c_values, 2, 3));
}

TEST_F(CublasTest, StridedBatchesMultiplyEachPair) {
  const int count = 3;
  const Floats a_values = Values(kMatrix * count, 1), b_values = Values(kMatrix, 2),
               c_values = Values(kMatrix * count, 3);
  const DeviceFloats a(a_values), b(b_values), c(c_values);
  ASSERT_EQ(cublasSgemmStridedBatched(handle_, CUBLAS_OP_T, CUBLAS_OP_N, kM, kN, kK, &kAlpha,
                                      a.get(), kLead, kMatrix, b.get(), kLead, 0, &kBeta, c.get(),
                                      kLead, kMatrix, count),
            CUBLAS_STATUS_SUCCESS);
  const Floats actual = c.Read();
  for (int i = 0; i < count; ++i) {
    const auto part = [i](const Floats& v) {
      return Floats(v.begin() + i * kMatrix, v.begin() + (i + 1) * kMatrix);
    };
    ExpectNear(part(actual), Product(CUBLAS_OP_T, CUBLAS_OP_N, part(a_values), b_values,
                                     part(c_values), kAlpha, kBeta));
  }
}

TEST_F(CublasTest, PointerBatchesReadTheirPointersFromDeviceMemory) {
  const Floats a_values = Values(kMatrix, 1), b_values = Values(kMatrix, 2),
               c_values = Values(kMatrix, 3);
  const DeviceFloats a(a_values), b(b_values), c0(c_values), c1(c_values);
  const Device<float*> a_array(std::vector<float*>{a.get(), b.get()});
  const Device<float*> b_array(std::vector<float*>{b.get(), a.get()});
  const Device<float*> c_array(std::vector<float*>{c0.get(), c1.get()});
  ASSERT_EQ(
      cublasSgemmBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kAlpha, a_array.get(),
                         kLead, b_array.get(), kLead, &kBeta, c_array.get(), kLead, 2),
      CUBLAS_STATUS_SUCCESS);
  ExpectNear(c0.Read(),
             Product(CUBLAS_OP_N, CUBLAS_OP_N, a_values, b_values, c_values, kAlpha, kBeta));
  ExpectNear(c1.Read(),
             Product(CUBLAS_OP_N, CUBLAS_OP_N, b_values, a_values, c_values, kAlpha, kBeta));
}

TEST_F(CublasTest, SameBitsAtEveryAddress) {
  const int size = 61;
  const Floats values = Values(size * size, 1);
  const DeviceFloats b(values);
  Floats first_product, first_vector, first_dot;
  for (int shift = 0; shift < 5; ++shift) {
    Floats shifted(shift, 0.0f);
    shifted.insert(shifted.end(), values.begin(), values.end());
    const DeviceFloats a(shifted), c(size * size), y(size);
    const float one = 1, zero = 0;
    cublasSgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, size, size, size, &one, a.get() + shift, size,
                b.get(), size, &zero, c.get(), size);
    cublasSgemv(handle_, CUBLAS_OP_T, size, size, &one, a.get() + shift, size, b.get(), 1, &zero,
                y.get(), 1);
    float dot = 0;
    cublasSdot(handle_, size * size, a.get() + shift, 1, b.get(), 1, &dot);
    if (shift == 0) {
      first_product = c.Read();
      first_vector = y.Read();
      first_dot = {dot};
    }
    EXPECT_EQ(c.Read(), first_product) << shift;
    EXPECT_EQ(y.Read(), first_vector) << shift;
    EXPECT_EQ(Floats{dot}, first_dot) << shift;
  }
}

TEST_F(CublasTest, WorkspaceOfTheProgramIsUsedUntilTheStreamChanges) {
  const DeviceFloats a(Values(kMatrix, 1)), b(Values(kMatrix, 2)), c(kMatrix);
  const auto multiply = [&] {
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kAlpha, a.get(), kLead,
                       b.get(), kLead, &kBeta, c.get(), kLead);
  };
  const DeviceBytes workspace(4096), untouched(4096);
  ASSERT_EQ(cublasSetWorkspace(handle_, workspace.get(), 4096), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(workspace.Read()[0], 0);

  cublasSetWorkspace(handle_, untouched.get(), 4096);
  cublasSetStream(handle_, nullptr);
  ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(untouched.Read()[0], 0);
}

TEST_F(CublasTest, ImpossibleSizesAreRefused) {
  const DeviceFloats a(kMatrix);
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kAlpha, a.get(), kM - 1,
                        a.get(), kLead, &kBeta, a.get(), kLead),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kAlpha, a.get(), CUDA_R_8I,
                         kLead, a.get(), CUDA_R_8I, kLead, &kBeta, a.get(), CUDA_R_32I, kLead,
                         CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasTest, VectorUpdatesWalkTheirSteps) {
  const DeviceFloats x(Floats{1, 2, 3, 4, 5, 6}), y(Floats{10, 20, 30, 40, 50, 60});
  const float two = 2;
  ASSERT_EQ(cublasSaxpy(handle_, 3, &two, x.get(), 2, y.get(), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(), (Floats{12, 26, 40, 40, 50, 60}));
  ASSERT_EQ(cublasSscal(handle_, 3, &two, y.get(), 2), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(), (Floats{24, 26, 80, 40, 100, 60}));
  ASSERT_EQ(cublasScopy(handle_, 3, x.get(), 1, y.get(), -1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(), (Floats{3, 2, 1, 40, 100, 60}));
  ASSERT_EQ(cublasSswap(handle_, 2, x.get(), 1, y.get() + 4, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(x.Read(), (Floats{100, 60, 3, 4, 5, 6}));
}

TEST_F(CublasTest, ReductionsReachHostAndDeviceMemory) {
  const DeviceFloats x(Floats{3, -4, 12, 0}), y(Floats{1, 2, 3, 4});
  float dot = 0, norm = 0, sum = 0;
  int largest = 0, smallest = 0;
  ASSERT_EQ(cublasSdot(handle_, 4, x.get(), 1, y.get(), 1, &dot), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSnrm2(handle_, 4, x.get(), 1, &norm), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSasum(handle_, 4, x.get(), 1, &sum), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasIsamax(handle_, 4, x.get(), 1, &largest), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasIsamin(handle_, 4, x.get(), 1, &smallest), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(dot, 31.0f);
  EXPECT_EQ(norm, 13.0f);
  EXPECT_EQ(sum, 19.0f);
  EXPECT_EQ(largest, 3);
  EXPECT_EQ(smallest, 4);

  cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE);
  const DeviceFloats result(1);
  ASSERT_EQ(cublasSnrm2(handle_, 4, x.get(), 1, result.get()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result.Read(), Floats{13.0f});
}

TEST_F(CublasTest, MatrixVectorOperations) {
  // A is 2 x 3, column-major, with leading dimension 3.
  const Floats a_values = {1, 2, 0, 3, 4, 0, 5, 6, 0};
  const DeviceFloats a(a_values), x(Floats{1, 1, 1}), y(Floats{100, 100});
  const float one = 1, two = 2;
  ASSERT_EQ(cublasSgemv(handle_, CUBLAS_OP_N, 2, 3, &two, a.get(), 3, x.get(), 1, &one, y.get(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(), (Floats{118, 124}));
  ASSERT_EQ(cublasSger(handle_, 2, 3, &one, y.get(), 1, x.get(), 1, a.get(), 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(a.Read(), (Floats{119, 126, 0, 121, 128, 0, 123, 130, 0}));

  const DeviceFloats source(Floats{1, 2, 3, 4, 5, 6}), turned(6);
  const float zero = 0;
  ASSERT_EQ(cublasSgeam(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, &one, source.get(), 2, &zero,
                        nullptr, 3, turned.get(), 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(turned.Read(), (Floats{1, 3, 5, 2, 4, 6}));
  ASSERT_EQ(
      cublasSdgmm(handle_, CUBLAS_SIDE_RIGHT, 3, 2, turned.get(), 3, y.get(), 1, turned.get(), 3),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(turned.Read(), (Floats{118, 354, 590, 248, 496, 744}));
}

}  // namespace
}  // namespace spillway::simulator::dnn
