// cublasLtMatmul against loops on the host: shapes, batches, epilogues and what it refuses.
#include <cublasLt.h>

#include <cmath>
#include <functional>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kM = 6, kN = 5, kK = 7;

class CublasLtTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&settings_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    SetLayouts(kM, kK, kK, kN);
  }
  void TearDown() override {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(settings_);
    cublasLtDestroy(handle_);
  }

  void SetLayouts(int a_rows, int a_columns, int b_rows, int b_columns) {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatrixLayoutCreate(&a_, CUDA_R_32F, a_rows, a_columns, a_rows);
    cublasLtMatrixLayoutCreate(&b_, CUDA_R_32F, b_rows, b_columns, b_rows);
    cublasLtMatrixLayoutCreate(&d_, CUDA_R_32F, kM, kN, kM);
  }

  template <typename Value>
  void Set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(settings_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }

  cublasStatus_t Multiply(const float* a, const float* b, float* d, float beta = 0) {
    const float alpha = 1;
    return cublasLtMatmul(handle_, settings_, &alpha, a, a_, b, b_, &beta, d, d_, d, d_, nullptr,
                          nullptr, 0, nullptr);
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t settings_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

// Column-major; `a` is kM x kK, `b` is kK x kN.
Floats Expected(const Floats& a, const Floats& b,
                const std::function<float(int row, int column, double sum)>& finish) {
  Floats result(kM * kN);
  for (int column = 0; column < kN; ++column) {
    for (int row = 0; row < kM; ++row) {
      double sum = 0;
      for (int k = 0; k < kK; ++k) sum += double(a[k * kM + row]) * double(b[column * kK + k]);
      result[column * kM + row] = finish(row, column, sum);
    }
  }
  return result;
}

Floats Transposed(const Floats& values, int rows, int columns) {
  Floats result(values.size());
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column)
      result[row * columns + column] = values[column * rows + row];
  }
  return result;
}

const Floats kA = Values(kM * kK, 1), kB = Values(kK * kN, 2), kD = Values(kM * kN, 3);

double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST_F(CublasLtTest, MultipliesAndAccumulates) {
  const DeviceFloats a(kA), b(kB), d(kD);
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get(), 0.5f), CUBLAS_STATUS_SUCCESS);
  ExpectNear(d.Read(), Expected(kA, kB, [](int row, int column, double sum) {
               return float(sum + 0.5 * double(kD[column * kM + row]));
             }));
}

TEST_F(CublasLtTest, TransposesItsFactors) {
  SetLayouts(kK, kM, kN, kK);
  Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  Set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  const DeviceFloats a(Transposed(kA, kM, kK)), b(Transposed(kB, kK, kN)), d(kD);
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  ExpectNear(d.Read(), Expected(kA, kB, [](int, int, double sum) { return float(sum); }));
}

TEST_F(CublasLtTest, MultipliesBatches) {
  const int count = 3;
  const std::int64_t a_stride = kM * kK, d_stride = kM * kN;
  for (const auto& [layout, stride] :
       {std::pair{a_, a_stride}, {b_, std::int64_t{0}}, {d_, d_stride}}) {
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                     sizeof count);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                     sizeof stride);
  }
  const Floats all = Values(count * kM * kK, 9);
  const DeviceFloats a(all), b(kB), d(count * kM * kN);
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  const Floats result = d.Read();
  for (int i = 0; i < count; ++i) {
    const Floats own(all.begin() + i * a_stride, all.begin() + (i + 1) * a_stride);
    ExpectNear(Floats(result.begin() + i * d_stride, result.begin() + (i + 1) * d_stride),
               Expected(own, kB, [](int, int, double sum) { return float(sum); }));
  }
}

TEST_F(CublasLtTest, AddsBiasKeepsAndAppliesGelu) {
  const Floats bias_values = Values(kM, 4);
  const DeviceFloats a(kA), b(kB), d(kM * kN), bias(bias_values), aux(8 * kN);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.get());
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.get());
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{8});
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  const auto before = [&](int row, double sum) { return sum + double(bias_values[row]); };
  ExpectNear(d.Read(), Expected(kA, kB, [&](int row, int, double sum) {
               return float(Gelu(before(row, sum)));
             }));
  const Floats kept = aux.Read();
  Expected(kA, kB, [&](int row, int column, double sum) {
    EXPECT_NEAR(kept[column * 8 + row], before(row, sum), 1e-5);
    return 0.0f;
  });
}

TEST_F(CublasLtTest, GeluGradientIsTheSlopeAtItsInput) {
  const Floats inputs = Values(8 * kN, 5);
  const DeviceFloats a(kA), b(kB), d(kM * kN), aux(inputs);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.get());
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{8});
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  ExpectNear(d.Read(), Expected(kA, kB, [&](int row, int column, double sum) {
               const double x = inputs[column * 8 + row], step = 1e-4;
               return float(sum * (Gelu(x + step) - Gelu(x - step)) / (2 * step));
             }));
}

TEST_F(CublasLtTest, ReluKeepsOneBitPerElementForItsGradient) {
  const DeviceFloats a(kA), b(kB), d(kM * kN), bias(kM);
  const DeviceBytes mask(128 / 8 * kN);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_AUX);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask.get());
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{128});
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  const auto relu = [](int, int, double sum) { return float(std::max(sum, 0.0)); };
  ExpectNear(d.Read(), Expected(kA, kB, relu));

  // The gradient lets the same elements pass, and sums them over the columns.
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DRELU_BGRAD);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.get());
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  ExpectNear(d.Read(), Expected(kA, kB, relu));
  Floats sums(kM);
  const Floats passed = Expected(kA, kB, relu);
  for (int i = 0; i < kM * kN; ++i) sums[i % kM] += passed[i];
  ExpectNear(bias.Read(), sums);
}

TEST_F(CublasLtTest, SumsTheGradientOfABiasOverB) {
  const DeviceFloats a(kA), b(kB), d(kM * kN), bias(kN);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.get());
  ASSERT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_SUCCESS);
  Floats sums(kN);
  for (int i = 0; i < kK * kN; ++i) sums[i / kK] += kB[i];
  ExpectNear(bias.Read(), sums);
}

TEST_F(CublasLtTest, TheHeuristicTakesNoMoreWorkspaceThanAllowed) {
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const std::size_t allowed = 1000;
  EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &allowed, sizeof allowed),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, settings_, a_, b_, d_, d_, preference, 1,
                                           &result, &found),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(result.state, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result.workspaceSize, allowed);

  // The algorithm needs its workspace: less is refused.
  const DeviceFloats a(kA), b(kB), d(kM * kN);
  const DeviceBytes workspace(allowed);
  const float alpha = 1, beta = 0;
  const auto multiply = [&](std::size_t workspace_bytes) {
    return cublasLtMatmul(handle_, settings_, &alpha, a.get(), a_, b.get(), b_, &beta, d.get(), d_,
                          d.get(), d_, &result.algo, workspace.get(), workspace_bytes, nullptr);
  };
  EXPECT_EQ(multiply(allowed - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(allowed), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulPreferenceDestroy(preference);
}

TEST_F(CublasLtTest, RefusesShapesThatDoNotMatchAndTypesThatAreNotSimulated) {
  const DeviceFloats a(kA), b(kB), d(kM * kN);
  const std::uint64_t rows = kK + 1;
  cublasLtMatrixLayoutSetAttribute(b_, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
  EXPECT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_INVALID_VALUE);
  SetLayouts(kM, kK, kK, kN);
  const std::uint32_t type = CUDA_R_8I;
  cublasLtMatrixLayoutSetAttribute(a_, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
  EXPECT_EQ(Multiply(a.get(), b.get(), d.get()), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasLtTest, AttributesReadBackAsTheyWereWritten) {
  std::int32_t transpose = 0;
  std::size_t written = 0;
  Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(settings_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                           sizeof transpose, &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(transpose, CUBLAS_OP_T);
  EXPECT_EQ(written, sizeof transpose);
}

}  // namespace
}  // namespace spillway::simulator::dnn
