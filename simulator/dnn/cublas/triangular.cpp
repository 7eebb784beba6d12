#include <cblas.h>

#include "simulator/dnn/cublas/handle.h"

namespace spillway::simulator::dnn {
namespace {

struct Triangle {
  cublasSideMode_t side;
  cublasFillMode_t fill;
  cublasOperation_t transpose;
  cublasDiagType_t diagonal;
  std::int64_t m, n, lda, ldb;

  std::int64_t Edge() const { return side == CUBLAS_SIDE_LEFT ? m : n; }
};

void SolveOne(const Triangle& t, double alpha, const float* a, float* b) {
  cblas_strsm(CblasColMajor, t.side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
              t.fill == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper,
              t.transpose == CUBLAS_OP_N ? CblasNoTrans : CblasTrans,
              t.diagonal == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit, t.m, t.n,
              static_cast<float>(alpha), a, t.lda, b, t.ldb);
}
void SolveOne(const Triangle& t, double alpha, const double* a, double* b) {
  cblas_dtrsm(CblasColMajor, t.side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,
              t.fill == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper,
              t.transpose == CUBLAS_OP_N ? CblasNoTrans : CblasTrans,
              t.diagonal == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit, t.m, t.n, alpha, a, t.lda,
              b, t.ldb);
}

template <typename Real>
struct TrsmOperation {
  static constexpr char kName[] = "cublas_trsm";
  static constexpr int kOperands = 3;  // A, B, alpha
  Triangle triangle;
  Scalar alpha;
  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    SolveOne(triangle, alpha.Get(operands[2]), static_cast<const Real*>(operands[0]),
             static_cast<Real*>(operands[1]));
  }
};

template <typename Real>
std::uint64_t ExtentBytes(std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  return rows == 0 || columns == 0 ? 0 : ((columns - 1) * leading + rows) * sizeof(Real);
}

template <typename Real>
struct TrsmBatchOperation {
  static constexpr char kName[] = "cublas_trsm_batched";
  static constexpr int kOperands = 3;  // arrays of pointers A, B; alpha
  static constexpr bool kFollowsPointers = true;
  Triangle triangle;
  Scalar alpha;
  std::int64_t count;
  void Run(void* const* operands) const {
    const auto& t = triangle;
    auto* const* a = static_cast<Real* const*>(operands[0]);
    auto* const* b = static_cast<Real* const*>(operands[1]);
    for (std::int64_t i = 0; i < count; ++i) {
      TouchRange(a[i], ExtentBytes<Real>(t.Edge(), t.Edge(), t.lda), Access::kRead);
      TouchRange(b[i], ExtentBytes<Real>(t.m, t.n, t.ldb), Access::kUpdate);
    }
    openblas_set_num_threads(1);
    for (std::int64_t i = 0; i < count; ++i) SolveOne(t, alpha.Get(operands[2]), a[i], b[i]);
  }
};

cublasStatus_t Check(cublasHandle_t handle, const Triangle& t, const void* alpha) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(t.m >= 0 && t.n >= 0 && t.lda >= std::max<std::int64_t>(1, t.Edge()) &&
                            t.ldb >= std::max<std::int64_t>(1, t.m) && alpha != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  return CUBLAS_STATUS_SUCCESS;
}

double FlopsOf(const Triangle& t) {
  return static_cast<double>(t.m) * static_cast<double>(t.n) * static_cast<double>(t.Edge());
}

template <typename Real>
cublasStatus_t Run(cublasHandle_t handle, const Triangle& t, const Real* alpha, const Real* a,
                   Real* b) {
  const cublasStatus_t status = Check(handle, t, alpha);
  if (status != CUBLAS_STATUS_SUCCESS || t.m == 0 || t.n == 0) return status;
  const Scalar scalar = ScalarArgument(handle, kNumberOf<Real>, alpha);
  return FromDriver(Enqueue(
      StreamOf(handle), TrsmOperation<Real>{t, scalar},
      {Reads(a, ExtentBytes<Real>(t.Edge(), t.Edge(), t.lda)),
       ScaledOutput(scalar, b, ExtentBytes<Real>(t.m, t.n, t.ldb)), ScalarOperand(scalar, alpha)},
      FlopsOf(t)));
}

template <typename Real>
cublasStatus_t RunBatch(cublasHandle_t handle, const Triangle& t, const Real* alpha,
                        const Real* const a[], Real* const b[], std::int64_t count) {
  const cublasStatus_t status = Check(handle, t, alpha);
  if (status != CUBLAS_STATUS_SUCCESS || t.m == 0 || t.n == 0 || count == 0) return status;
  SPILLWAY_BLAS_REQUIRE(a != nullptr && b != nullptr && count > 0, CUBLAS_STATUS_INVALID_VALUE);
  const Scalar scalar = ScalarArgument(handle, kNumberOf<Real>, alpha);
  const double bytes = static_cast<double>(ExtentBytes<Real>(t.Edge(), t.Edge(), t.lda) +
                                           2 * ExtentBytes<Real>(t.m, t.n, t.ldb));
  return FromDriver(Enqueue(StreamOf(handle), TrsmBatchOperation<Real>{t, scalar, count},
                            {Reads(a, count * sizeof(void*)), Reads(b, count * sizeof(void*)),
                             ScalarOperand(scalar, alpha)},
                            FlopsOf(t) * static_cast<double>(count),
                            bytes * static_cast<double>(count)));
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_TRSM(T, Real, Int, suffix_v2, suffix)                                        \
  cublasStatus_t cublas##T##trsm##suffix_v2(                                                       \
      cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t transpose, \
      cublasDiagType_t diagonal, Int m, Int n, const Real* alpha, const Real* a, Int lda, Real* b, \
      Int ldb) {                                                                                   \
    return Run<Real>(h, {side, fill, transpose, diagonal, m, n, lda, ldb}, alpha, a, b);           \
  }                                                                                                \
  cublasStatus_t cublas##T##trsmBatched##suffix(                                                   \
      cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t transpose, \
      cublasDiagType_t diagonal, Int m, Int n, const Real* alpha, const Real* const a[], Int lda,  \
      Real* const b[], Int ldb, Int count) {                                                       \
    return RunBatch<Real>(h, {side, fill, transpose, diagonal, m, n, lda, ldb}, alpha, a, b,       \
                          count);                                                                  \
  }
SPILLWAY_BLAS_TRSM(S, float, int, _v2, )
SPILLWAY_BLAS_TRSM(S, float, int64_t, _v2_64, _64)
SPILLWAY_BLAS_TRSM(D, double, int, _v2, )
SPILLWAY_BLAS_TRSM(D, double, int64_t, _v2_64, _64)
#undef SPILLWAY_BLAS_TRSM

}  // extern "C"
