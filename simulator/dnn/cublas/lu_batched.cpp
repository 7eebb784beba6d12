#include <cmath>
#include <utility>
#include <vector>

#include "simulator/dnn/cublas/handle.h"

namespace spillway::simulator::dnn {
namespace {

template <typename Real>
std::uint64_t SquareBytes(std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  return rows == 0 || columns == 0 ? 0 : ((columns - 1) * leading + rows) * sizeof(Real);
}

template <typename Real>
struct View {
  Real* data;
  std::int64_t leading;
  Real& operator()(std::int64_t row, std::int64_t column) const {
    return data[column * leading + row];
  }
};

// The first of equals.
template <typename Real>
std::int64_t PivotRow(const View<Real>& a, std::int64_t n, std::int64_t column) {
  std::int64_t best = column;
  for (std::int64_t row = column + 1; row < n; ++row) {
    if (std::abs(a(row, column)) > std::abs(a(best, column))) best = row;
  }
  return best;
}

template <typename Real>
void SwapRows(const View<Real>& a, std::int64_t columns, std::int64_t one, std::int64_t other) {
  if (one == other) return;
  for (std::int64_t column = 0; column < columns; ++column)
    std::swap(a(one, column), a(other, column));
}

// A = P L U in place. `pivots` may be null: then nothing is exchanged. Returns LAPACK's info.
template <typename Real>
int Factorise(const View<Real>& a, std::int64_t n, int* pivots) {
  int info = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    if (pivots != nullptr) {
      const std::int64_t row = PivotRow(a, n, k);
      pivots[k] = static_cast<int>(row + 1);
      SwapRows(a, n, k, row);
    }
    if (a(k, k) == 0) {
      if (info == 0) info = static_cast<int>(k + 1);
      continue;
    }
    for (std::int64_t row = k + 1; row < n; ++row) a(row, k) /= a(k, k);
    for (std::int64_t column = k + 1; column < n; ++column) {
      for (std::int64_t row = k + 1; row < n; ++row) a(row, column) -= a(row, k) * a(k, column);
    }
  }
  return info;
}

// L U X = P B: X overwrites B.
template <typename Real>
void SolvePlain(const View<Real>& lu, std::int64_t n, const int* pivots, const View<Real>& b,
                std::int64_t columns) {
  for (std::int64_t k = 0; pivots != nullptr && k < n; ++k) SwapRows(b, columns, k, pivots[k] - 1);
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t row = k + 1; row < n; ++row) b(row, column) -= lu(row, k) * b(k, column);
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      b(k, column) /= lu(k, k);
      for (std::int64_t row = 0; row < k; ++row) b(row, column) -= lu(row, k) * b(k, column);
    }
  }
}

// (P L U)^T X = B: X overwrites B.
template <typename Real>
void SolveTransposed(const View<Real>& lu, std::int64_t n, const int* pivots, const View<Real>& b,
                     std::int64_t columns) {
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t row = 0; row < k; ++row) b(k, column) -= lu(row, k) * b(row, column);
      b(k, column) /= lu(k, k);
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
      for (std::int64_t row = k + 1; row < n; ++row) b(k, column) -= lu(row, k) * b(row, column);
    }
  }
  for (std::int64_t k = n - 1; pivots != nullptr && k >= 0; --k)
    SwapRows(b, columns, k, pivots[k] - 1);
}

// Before any is changed: an illegal access leaves all as they are.
template <typename Real>
void TouchAll(Real* const* matrices, std::int64_t count, std::uint64_t size_bytes, Access access) {
  for (std::int64_t i = 0; i < count; ++i)
    TouchRange(const_cast<std::remove_const_t<Real>*>(matrices[i]), size_bytes, access);
}

template <typename Real>
struct FactoriseOperation {
  static constexpr char kName[] = "cublas_getrf_batched";
  static constexpr int kOperands = 3;  // array of matrices, pivots, info
  static constexpr bool kFollowsPointers = true;
  std::int64_t n, lda, count;

  void Run(void* const* operands) const {
    auto* const* matrices = static_cast<Real* const*>(operands[0]);
    auto* pivots = static_cast<int*>(operands[1]);
    TouchAll(matrices, count, SquareBytes<Real>(n, n, lda), Access::kUpdate);
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<int*>(operands[2])[i] =
          Factorise(View<Real>{matrices[i], lda}, n, pivots != nullptr ? pivots + i * n : nullptr);
    }
  }
};

// C = A^-1, where `lu` holds A's factors.
template <typename Real>
int Invert(const View<Real>& lu, std::int64_t n, const int* pivots, const View<Real>& c) {
  for (std::int64_t k = 0; k < n; ++k) {
    if (lu(k, k) == 0) return static_cast<int>(k + 1);
  }
  for (std::int64_t column = 0; column < n; ++column) {
    for (std::int64_t row = 0; row < n; ++row) c(row, column) = row == column ? Real(1) : Real(0);
  }
  SolvePlain(lu, n, pivots, c, n);
  return 0;
}

template <typename Real>
struct InvertOperation {
  static constexpr char kName[] = "cublas_getri_batched";
  static constexpr int kOperands = 4;  // array of factors, pivots, array of inverses, info
  static constexpr bool kFollowsPointers = true;
  std::int64_t n, lda, ldc, count;
  std::int32_t factorises;  // the matrices are not factorised yet, and stay as they are

  void Run(void* const* operands) const {
    auto* const* matrices = static_cast<Real* const*>(operands[0]);
    const auto* pivots = static_cast<const int*>(operands[1]);
    auto* const* inverses = static_cast<Real* const*>(operands[2]);
    auto* info = static_cast<int*>(operands[3]);
    TouchAll(matrices, count, SquareBytes<Real>(n, n, lda), Access::kRead);
    TouchAll(inverses, count, SquareBytes<Real>(n, n, ldc), Access::kWrite);
    for (std::int64_t i = 0; i < count; ++i) {
      const View<Real> a{matrices[i], lda};
      const View<Real> c{inverses[i], ldc};
      info[i] = factorises ? InvertPlain(a, c)
                           : Invert(a, n, pivots != nullptr ? pivots + i * n : nullptr, c);
    }
  }

  int InvertPlain(const View<Real>& a, const View<Real>& c) const {
    std::vector<Real> copy(n * n);
    std::vector<int> rows(n);
    const View<Real> factors{copy.data(), n};
    for (std::int64_t column = 0; column < n; ++column) {
      for (std::int64_t row = 0; row < n; ++row) factors(row, column) = a(row, column);
    }
    const int info = Factorise(factors, n, rows.data());
    return info != 0 ? info : Invert(factors, n, rows.data(), c);
  }
};

template <typename Real>
struct SolveOperation {
  static constexpr char kName[] = "cublas_getrs_batched";
  static constexpr int kOperands = 3;  // array of factors, pivots, array of right-hand sides
  static constexpr bool kFollowsPointers = true;
  std::int32_t transposed;
  std::int64_t n, columns, lda, ldb, count;

  void Run(void* const* operands) const {
    auto* const* factors = static_cast<Real* const*>(operands[0]);
    const auto* pivots = static_cast<const int*>(operands[1]);
    auto* const* sides = static_cast<Real* const*>(operands[2]);
    TouchAll(factors, count, SquareBytes<Real>(n, n, lda), Access::kRead);
    TouchAll(sides, count, SquareBytes<Real>(n, columns, ldb), Access::kUpdate);
    for (std::int64_t i = 0; i < count; ++i) {
      const int* own = pivots != nullptr ? pivots + i * n : nullptr;
      const auto solve = transposed ? SolveTransposed<Real> : SolvePlain<Real>;
      solve({factors[i], lda}, n, own, {sides[i], ldb}, columns);
    }
  }
};

double Cubed(std::int64_t n, std::int64_t count) {
  const auto edge = static_cast<double>(n);
  return edge * edge * edge * static_cast<double>(count);
}

bool BatchFits(std::int64_t n, std::int64_t lda, std::int64_t count) {
  return n >= 0 && count >= 0 && lda >= std::max<std::int64_t>(1, n);
}

template <typename Real>
cublasStatus_t RunFactorise(cublasHandle_t handle, std::int64_t n, Real* const a[],
                            std::int64_t lda, int* pivots, int* info, std::int64_t count) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(BatchFits(n, lda, count), CUBLAS_STATUS_INVALID_VALUE);
  if (count == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(a != nullptr && info != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  return FromDriver(
      Enqueue(StreamOf(handle), FactoriseOperation<Real>{n, lda, count},
              {Reads(a, count * sizeof(void*)), Writes(pivots, n * count * sizeof(int)),
               Writes(info, count * sizeof(int))},
              Cubed(n, count) * 2 / 3, static_cast<double>(n * n * count) * 2 * sizeof(Real)));
}

template <typename Real>
cublasStatus_t RunInvert(cublasHandle_t handle, std::int64_t n, const Real* const a[],
                         std::int64_t lda, const int* pivots, Real* const c[], std::int64_t ldc,
                         int* info, std::int64_t count, bool factorises) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(BatchFits(n, lda, count) && ldc >= std::max<std::int64_t>(1, n),
                        CUBLAS_STATUS_INVALID_VALUE);
  if (count == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(a != nullptr && c != nullptr && info != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  return FromDriver(
      Enqueue(StreamOf(handle), InvertOperation<Real>{n, lda, ldc, count, factorises},
              {Reads(a, count * sizeof(void*)), Reads(pivots, n * count * sizeof(int)),
               Reads(c, count * sizeof(void*)), Writes(info, count * sizeof(int))},
              Cubed(n, count) * 2, static_cast<double>(n * n * count) * 2 * sizeof(Real)));
}

template <typename Real>
cublasStatus_t RunSolve(cublasHandle_t handle, cublasOperation_t transpose, std::int64_t n,
                        std::int64_t columns, const Real* const a[], std::int64_t lda,
                        const int* pivots, Real* const b[], std::int64_t ldb, int* info,
                        std::int64_t count) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(BatchFits(n, lda, count) && columns >= 0 &&
                            ldb >= std::max<std::int64_t>(1, n) && info != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  *info = 0;
  if (count == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(a != nullptr && b != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  const bool transposed = transpose != CUBLAS_OP_N;
  return FromDriver(
      Enqueue(StreamOf(handle), SolveOperation<Real>{transposed, n, columns, lda, ldb, count},
              {Reads(a, count * sizeof(void*)), Reads(pivots, n * count * sizeof(int)),
               Reads(b, count * sizeof(void*))},
              static_cast<double>(2 * n * n * columns * count),
              static_cast<double>(n * (n + 2 * columns) * count) * sizeof(Real)));
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_LU(T, Real)                                                                  \
  cublasStatus_t cublas##T##getrfBatched(cublasHandle_t h, int n, Real* const a[], int lda,        \
                                         int* pivots, int* info, int count) {                      \
    return RunFactorise<Real>(h, n, a, lda, pivots, info, count);                                  \
  }                                                                                                \
  cublasStatus_t cublas##T##getriBatched(cublasHandle_t h, int n, const Real* const a[], int lda,  \
                                         const int* pivots, Real* const c[], int ldc, int* info,   \
                                         int count) {                                              \
    return RunInvert<Real>(h, n, a, lda, pivots, c, ldc, info, count, false);                      \
  }                                                                                                \
  cublasStatus_t cublas##T##matinvBatched(cublasHandle_t h, int n, const Real* const a[], int lda, \
                                          Real* const c[], int ldc, int* info, int count) {        \
    constexpr int kLargest = 32; /* as documented */                                               \
    if (n > kLargest) return CUBLAS_STATUS_INVALID_VALUE;                                          \
    return RunInvert<Real>(h, n, a, lda, nullptr, c, ldc, info, count, true);                      \
  }                                                                                                \
  cublasStatus_t cublas##T##getrsBatched(                                                          \
      cublasHandle_t h, cublasOperation_t transpose, int n, int columns, const Real* const a[],    \
      int lda, const int* pivots, Real* const b[], int ldb, int* info, int count) {                \
    return RunSolve<Real>(h, transpose, n, columns, a, lda, pivots, b, ldb, info, count);          \
  }
SPILLWAY_BLAS_LU(S, float)
SPILLWAY_BLAS_LU(D, double)
#undef SPILLWAY_BLAS_LU

}  // extern "C"
