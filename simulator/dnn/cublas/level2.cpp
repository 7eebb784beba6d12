#include <cblas.h>

#include <cstdlib>
#include <limits>

#include "simulator/dnn/cublas/handle.h"

namespace spillway::simulator::dnn {
namespace {

std::uint64_t MatrixBytes(std::int64_t rows, std::int64_t columns, std::int64_t leading,
                          std::size_t element_bytes) {
  return rows == 0 || columns == 0 ? 0 : ((columns - 1) * leading + rows) * element_bytes;
}

bool FitsInt(std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t size : sizes) {
    if (size < std::numeric_limits<int>::min() || size > std::numeric_limits<int>::max())
      return false;
  }
  return true;
}

void Gemv(CBLAS_TRANSPOSE transpose, int m, int n, float alpha, const float* a, int lda,
          const float* x, int x_step, float beta, float* y, int y_step) {
  cblas_sgemv(CblasColMajor, transpose, m, n, alpha, a, lda, x, x_step, beta, y, y_step);
}
void Gemv(CBLAS_TRANSPOSE transpose, int m, int n, double alpha, const double* a, int lda,
          const double* x, int x_step, double beta, double* y, int y_step) {
  cblas_dgemv(CblasColMajor, transpose, m, n, alpha, a, lda, x, x_step, beta, y, y_step);
}

template <typename Real>
struct GemvOperation {
  static constexpr char kName[] = "cublas_gemv";
  static constexpr int kOperands = 5;  // A, x, y, alpha, beta
  std::int32_t transposed;
  std::int64_t m, n, lda, x_step, y_step;
  Scalar alpha;
  Scalar beta;
  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    Gemv(transposed ? CblasTrans : CblasNoTrans, m, n, static_cast<Real>(alpha.Get(operands[3])),
         static_cast<const Real*>(operands[0]), lda, static_cast<const Real*>(operands[1]), x_step,
         static_cast<Real>(beta.Get(operands[4])), static_cast<Real*>(operands[2]), y_step);
  }
};

template <typename Real>
struct GerOperation {
  static constexpr char kName[] = "cublas_ger";
  static constexpr int kOperands = 4;  // x, y, A, alpha
  std::int64_t m, n, x_step, y_step, lda;
  Scalar alpha;
  void Run(void* const* operands) const {
    const auto* x = static_cast<const Real*>(operands[0]);
    const auto* y = static_cast<const Real*>(operands[1]);
    auto* a = static_cast<Real*>(operands[2]);
    if (x_step < 0) x -= (m - 1) * x_step;
    if (y_step < 0) y -= (n - 1) * y_step;
    for (std::int64_t column = 0; column < n; ++column) {
      const Real factor = static_cast<Real>(alpha.Get(operands[3])) * y[column * y_step];
      for (std::int64_t row = 0; row < m; ++row) a[column * lda + row] += factor * x[row * x_step];
    }
  }
};

// C = alpha op(A) + beta op(B). C may be A or B when that matrix is not transposed.
template <typename Real>
struct GeamOperation {
  static constexpr char kName[] = "cublas_geam";
  static constexpr int kOperands = 5;  // A, B, C, alpha, beta
  std::int32_t a_transposed, b_transposed;
  std::int64_t m, n, lda, ldb, ldc;
  Scalar alpha;
  Scalar beta;
  void Run(void* const* operands) const {
    const auto* a = static_cast<const Real*>(operands[0]);
    const auto* b = static_cast<const Real*>(operands[1]);
    auto* c = static_cast<Real*>(operands[2]);
    const auto factor_a = static_cast<Real>(alpha.Get(operands[3]));
    const auto factor_b = static_cast<Real>(beta.Get(operands[4]));
    for (std::int64_t column = 0; column < n; ++column) {
      for (std::int64_t row = 0; row < m; ++row) {
        Real sum = 0;
        if (factor_a != 0)
          sum += factor_a * a[a_transposed ? row * lda + column : column * lda + row];
        if (factor_b != 0)
          sum += factor_b * b[b_transposed ? row * ldb + column : column * ldb + row];
        c[column * ldc + row] = sum;
      }
    }
  }
};

template <typename Real>
struct DgmmOperation {
  static constexpr char kName[] = "cublas_dgmm";
  static constexpr int kOperands = 3;  // A, x, C
  std::int32_t from_left;
  std::int64_t m, n, lda, x_step, ldc;
  void Run(void* const* operands) const {
    const auto* a = static_cast<const Real*>(operands[0]);
    const auto* x = static_cast<const Real*>(operands[1]);
    auto* c = static_cast<Real*>(operands[2]);
    if (x_step < 0) x -= ((from_left ? m : n) - 1) * x_step;
    for (std::int64_t column = 0; column < n; ++column) {
      for (std::int64_t row = 0; row < m; ++row) {
        c[column * ldc + row] = a[column * lda + row] * x[(from_left ? row : column) * x_step];
      }
    }
  }
};

template <typename Real>
cublasStatus_t RunGemv(cublasHandle_t handle, cublasOperation_t transpose, std::int64_t m,
                       std::int64_t n, const Real* alpha, const Real* a, std::int64_t lda,
                       const Real* x, std::int64_t x_step, const Real* beta, Real* y,
                       std::int64_t y_step) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(m >= 0 && n >= 0 && lda >= std::max<std::int64_t>(1, m) && x_step != 0 &&
                            y_step != 0 && alpha != nullptr && beta != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  SPILLWAY_BLAS_REQUIRE(FitsInt({m, n, lda, x_step, y_step}), CUBLAS_STATUS_NOT_SUPPORTED);
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const bool transposed = transpose != CUBLAS_OP_N;
  const Scalar alpha_scalar = ScalarArgument(handle, kNumberOf<Real>, alpha);
  const Scalar beta_scalar = ScalarArgument(handle, kNumberOf<Real>, beta);
  return FromDriver(
      Enqueue(StreamOf(handle),
              GemvOperation<Real>{transposed, m, n, lda, x_step, y_step, alpha_scalar, beta_scalar},
              {Reads(a, MatrixBytes(m, n, lda, sizeof(Real))),
               Reads(x, VectorBytes(transposed ? m : n, x_step, sizeof(Real))),
               ScaledOutput(beta_scalar, y, VectorBytes(transposed ? n : m, y_step, sizeof(Real))),
               ScalarOperand(alpha_scalar, alpha), ScalarOperand(beta_scalar, beta)},
              2.0 * static_cast<double>(m) * static_cast<double>(n)));
}

template <typename Real>
cublasStatus_t RunGer(cublasHandle_t handle, std::int64_t m, std::int64_t n, const Real* alpha,
                      const Real* x, std::int64_t x_step, const Real* y, std::int64_t y_step,
                      Real* a, std::int64_t lda) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(m >= 0 && n >= 0 && lda >= std::max<std::int64_t>(1, m) && x_step != 0 &&
                            y_step != 0 && alpha != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const Scalar scalar = ScalarArgument(handle, kNumberOf<Real>, alpha);
  return FromDriver(
      Enqueue(StreamOf(handle), GerOperation<Real>{m, n, x_step, y_step, lda, scalar},
              {Reads(x, VectorBytes(m, x_step, sizeof(Real))),
               Reads(y, VectorBytes(n, y_step, sizeof(Real))),
               Updates(a, MatrixBytes(m, n, lda, sizeof(Real))), ScalarOperand(scalar, alpha)},
              2.0 * static_cast<double>(m) * static_cast<double>(n)));
}

template <typename Real>
cublasStatus_t RunGeam(cublasHandle_t handle, cublasOperation_t transpose_a,
                       cublasOperation_t transpose_b, std::int64_t m, std::int64_t n,
                       const Real* alpha, const Real* a, std::int64_t lda, const Real* beta,
                       const Real* b, std::int64_t ldb, Real* c, std::int64_t ldc) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(m >= 0 && n >= 0 && ldc >= std::max<std::int64_t>(1, m) &&
                            alpha != nullptr && beta != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  const bool a_turned = transpose_a != CUBLAS_OP_N;
  const bool b_turned = transpose_b != CUBLAS_OP_N;
  SPILLWAY_BLAS_REQUIRE(
      !(c == a && (a_turned || lda != ldc)) && !(c == b && (b_turned || ldb != ldc)),
      CUBLAS_STATUS_INVALID_VALUE);
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const Scalar alpha_scalar = ScalarArgument(handle, kNumberOf<Real>, alpha);
  const Scalar beta_scalar = ScalarArgument(handle, kNumberOf<Real>, beta);
  const GeamOperation<Real> operation = {a_turned, b_turned,     m,          n, lda, ldb,
                                         ldc,      alpha_scalar, beta_scalar};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Reads(IsKnownZero(alpha_scalar) ? nullptr : a,
                     MatrixBytes(a_turned ? n : m, a_turned ? m : n, lda, sizeof(Real))),
               Reads(IsKnownZero(beta_scalar) ? nullptr : b,
                     MatrixBytes(b_turned ? n : m, b_turned ? m : n, ldb, sizeof(Real))),
               Writes(c, MatrixBytes(m, n, ldc, sizeof(Real))), ScalarOperand(alpha_scalar, alpha),
               ScalarOperand(beta_scalar, beta)},
              2.0 * static_cast<double>(m) * static_cast<double>(n)));
}

template <typename Real>
cublasStatus_t RunDgmm(cublasHandle_t handle, cublasSideMode_t side, std::int64_t m, std::int64_t n,
                       const Real* a, std::int64_t lda, const Real* x, std::int64_t x_step, Real* c,
                       std::int64_t ldc) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(m >= 0 && n >= 0 && lda >= m && ldc >= m, CUBLAS_STATUS_INVALID_VALUE);
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const bool left = side == CUBLAS_SIDE_LEFT;
  return FromDriver(Enqueue(StreamOf(handle), DgmmOperation<Real>{left, m, n, lda, x_step, ldc},
                            {Reads(a, MatrixBytes(m, n, lda, sizeof(Real))),
                             Reads(x, VectorBytes(left ? m : n, x_step, sizeof(Real))),
                             Writes(c, MatrixBytes(m, n, ldc, sizeof(Real)))},
                            static_cast<double>(m) * static_cast<double>(n)));
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_LEVEL2(T, Real, Int, suffix_v2, suffix)                                     \
  cublasStatus_t cublas##T##gemv##suffix_v2(                                                      \
      cublasHandle_t h, cublasOperation_t transpose, Int m, Int n, const Real* alpha,             \
      const Real* a, Int lda, const Real* x, Int x_step, const Real* beta, Real* y, Int y_step) { \
    return RunGemv<Real>(h, transpose, m, n, alpha, a, lda, x, x_step, beta, y, y_step);          \
  }                                                                                               \
  cublasStatus_t cublas##T##ger##suffix_v2(cublasHandle_t h, Int m, Int n, const Real* alpha,     \
                                           const Real* x, Int x_step, const Real* y, Int y_step,  \
                                           Real* a, Int lda) {                                    \
    return RunGer<Real>(h, m, n, alpha, x, x_step, y, y_step, a, lda);                            \
  }                                                                                               \
  cublasStatus_t cublas##T##geam##suffix(cublasHandle_t h, cublasOperation_t ta,                  \
                                         cublasOperation_t tb, Int m, Int n, const Real* alpha,   \
                                         const Real* a, Int lda, const Real* beta, const Real* b, \
                                         Int ldb, Real* c, Int ldc) {                             \
    return RunGeam<Real>(h, ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc);                   \
  }                                                                                               \
  cublasStatus_t cublas##T##dgmm##suffix(cublasHandle_t h, cublasSideMode_t side, Int m, Int n,   \
                                         const Real* a, Int lda, const Real* x, Int x_step,       \
                                         Real* c, Int ldc) {                                      \
    return RunDgmm<Real>(h, side, m, n, a, lda, x, x_step, c, ldc);                               \
  }
SPILLWAY_BLAS_LEVEL2(S, float, int, _v2, )
SPILLWAY_BLAS_LEVEL2(S, float, int64_t, _v2_64, _64)
SPILLWAY_BLAS_LEVEL2(D, double, int, _v2, )
SPILLWAY_BLAS_LEVEL2(D, double, int64_t, _v2_64, _64)
#undef SPILLWAY_BLAS_LEVEL2

}  // extern "C"
