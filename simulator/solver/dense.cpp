// Dense LU (getrf, getrs), Cholesky (potrf, potrs), and QR (geqrf, ormqr). LAPACK computes, with
// one thread.
#include <cblas.h>

#include <algorithm>
#include <cstdint>

#include "simulator/solver/handle.h"
#include "simulator/solver/lapack.h"

namespace spillway::simulator::solver {
namespace {

constexpr int kBlockColumns = 32;

template <typename Real>
std::uint64_t BytesOf(int rows, int columns, int leading) {
  return rows == 0 || columns == 0 ? 0
                                   : (std::uint64_t(columns - 1) * leading + rows) * sizeof(Real);
}

bool ShapeFits(int rows, int columns, int leading) {
  return rows >= 0 && columns >= 0 && leading >= std::max(rows, 1);
}

char PartOf(cublasFillMode_t fill) { return fill == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U'; }
char TurnedBy(cublasOperation_t operation) { return operation == CUBLAS_OP_N ? 'N' : 'T'; }
double Cube(double n) { return n * n * n; }

// Without exchanges, for callers that give no room for pivots. Returns LAPACK's info.
template <typename Real>
int FactoriseInPlace(int rows, int columns, Real* a, std::int64_t lda) {
  int info = 0;
  for (int k = 0; k < std::min(rows, columns); ++k) {
    if (a[k * lda + k] == 0) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int row = k + 1; row < rows; ++row) a[k * lda + row] /= a[k * lda + k];
    for (int column = k + 1; column < columns; ++column) {
      for (int row = k + 1; row < rows; ++row)
        a[column * lda + row] -= a[k * lda + row] * a[column * lda + k];
    }
  }
  return info;
}

// With unit lower and upper triangles, or with their transposes.
template <typename Real>
void SolveInPlace(char turned, int n, int columns, const Real* lu, std::int64_t lda, Real* b,
                  std::int64_t ldb) {
  const bool is_turned = turned != 'N';
  for (int column = 0; column < columns; ++column) {
    Real* const x = b + column * ldb;
    for (int row = 0; row < n; ++row) {
      for (int k = 0; k < row; ++k)
        x[row] -= (is_turned ? lu[row * lda + k] : lu[k * lda + row]) * x[k];
      if (is_turned) x[row] /= lu[row * lda + row];
    }
    for (int row = n - 1; row >= 0; --row) {
      for (int k = row + 1; k < n; ++k)
        x[row] -= (is_turned ? lu[row * lda + k] : lu[k * lda + row]) * x[k];
      if (!is_turned) x[row] /= lu[row * lda + row];
    }
  }
}

template <typename Real>
struct GetrfOperation {
  static constexpr char kName[] = "cusolver_getrf";
  static constexpr int kOperands = 4;  // A, work space, pivots, info
  int rows, columns, lda;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    auto* const a = static_cast<Real*>(operands[0]);
    auto* const pivots = static_cast<int*>(operands[2]);
    *static_cast<int*>(operands[3]) = pivots == nullptr
                                          ? FactoriseInPlace(rows, columns, a, lda)
                                          : lapack::Getrf(rows, columns, a, lda, pivots);
  }
};

template <typename Real>
struct GetrsOperation {
  static constexpr char kName[] = "cusolver_getrs";
  static constexpr int kOperands = 4;  // factors, pivots, B, info
  int n, columns, lda, ldb;
  char turned;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    const auto* const a = static_cast<const Real*>(operands[0]);
    const auto* const pivots = static_cast<const int*>(operands[1]);
    auto* const b = static_cast<Real*>(operands[2]);
    int& info = *static_cast<int*>(operands[3]);
    info = 0;
    if (pivots == nullptr) return SolveInPlace(turned, n, columns, a, lda, b, ldb);
    info = lapack::Getrs(turned, n, columns, a, lda, pivots, b, ldb);
  }
};

template <typename Real>
struct PotrfOperation {
  static constexpr char kName[] = "cusolver_potrf";
  static constexpr int kOperands = 3;  // A, work space, info
  int n, lda;
  char part;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    *static_cast<int*>(operands[2]) = lapack::Potrf(part, n, static_cast<Real*>(operands[0]), lda);
  }
};

template <typename Real>
struct PotrsOperation {
  static constexpr char kName[] = "cusolver_potrs";
  static constexpr int kOperands = 3;  // factor, B, info
  int n, columns, lda, ldb;
  char part;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    *static_cast<int*>(operands[2]) =
        lapack::Potrs(part, n, columns, static_cast<const Real*>(operands[0]), lda,
                      static_cast<Real*>(operands[1]), ldb);
  }
};

template <typename Real>
struct GeqrfOperation {
  static constexpr char kName[] = "cusolver_geqrf";
  static constexpr int kOperands = 4;  // A, tau, work space, info
  int rows, columns, lda, work_count;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    *static_cast<int*>(operands[3]) =
        lapack::Geqrf(rows, columns, static_cast<Real*>(operands[0]), lda,
                      static_cast<Real*>(operands[1]), static_cast<Real*>(operands[2]), work_count);
  }
};

template <typename Real>
struct OrmqrOperation {
  static constexpr char kName[] = "cusolver_ormqr";
  static constexpr int kOperands = 5;  // A, tau, C, work space, info
  int rows, columns, reflectors, lda, ldc, work_count;
  char side, turned;

  void Run(void* const* operands) const {
    openblas_set_num_threads(1);
    *static_cast<int*>(operands[4]) = lapack::Ormqr(
        side, turned, rows, columns, reflectors, static_cast<const Real*>(operands[0]), lda,
        static_cast<const Real*>(operands[1]), static_cast<Real*>(operands[2]), ldc,
        static_cast<Real*>(operands[3]), work_count);
  }
};

#define SPILLWAY_SOLVER_CHECK(condition)                                       \
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED); \
  SPILLWAY_SOLVER_REQUIRE(condition, CUSOLVER_STATUS_INVALID_VALUE)

// Programs only pass the room on.
cusolverStatus_t RoomFor(cusolverDnHandle_t handle, bool is_valid, std::int64_t count, int* out) {
  SPILLWAY_SOLVER_CHECK(is_valid && out != nullptr && count <= INT32_MAX);
  *out = static_cast<int>(std::max<std::int64_t>(count, 1));
  return CUSOLVER_STATUS_SUCCESS;
}

template <typename Real>
cusolverStatus_t Getrf(cusolverDnHandle_t handle, int rows, int columns, Real* a, int lda,
                       Real* work, int* pivots, int* info) {
  SPILLWAY_SOLVER_CHECK(ShapeFits(rows, columns, lda));
  const int rank = std::min(rows, columns);
  return FromDriver(Enqueue(StreamOf(handle), GetrfOperation<Real>{rows, columns, lda},
                            {Updates(a, BytesOf<Real>(rows, columns, lda)),
                             Clobbers(work, std::uint64_t(columns) * sizeof(Real)),
                             Writes(pivots, rank * sizeof(int)), Writes(info, sizeof(int))},
                            2.0 / 3 * Cube(rank)));
}

template <typename Real>
cusolverStatus_t Getrs(cusolverDnHandle_t handle, cublasOperation_t operation, int n, int columns,
                       const Real* a, int lda, const int* pivots, Real* b, int ldb, int* info) {
  SPILLWAY_SOLVER_CHECK(ShapeFits(n, n, lda) && ShapeFits(n, columns, ldb));
  return FromDriver(Enqueue(StreamOf(handle),
                            GetrsOperation<Real>{n, columns, lda, ldb, TurnedBy(operation)},
                            {Reads(a, BytesOf<Real>(n, n, lda)), Reads(pivots, n * sizeof(int)),
                             Updates(b, BytesOf<Real>(n, columns, ldb)), Writes(info, sizeof(int))},
                            2.0 * n * n * columns));
}

template <typename Real>
cusolverStatus_t Potrf(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, Real* a, int lda,
                       Real* work, int work_count, int* info) {
  SPILLWAY_SOLVER_CHECK(ShapeFits(n, n, lda) && work_count >= 1);
  return FromDriver(Enqueue(StreamOf(handle), PotrfOperation<Real>{n, lda, PartOf(fill)},
                            {Updates(a, BytesOf<Real>(n, n, lda)),
                             Clobbers(work, work_count * sizeof(Real)), Writes(info, sizeof(int))},
                            Cube(n) / 3));
}

template <typename Real>
cusolverStatus_t Potrs(cusolverDnHandle_t handle, cublasFillMode_t fill, int n, int columns,
                       const Real* a, int lda, Real* b, int ldb, int* info) {
  SPILLWAY_SOLVER_CHECK(ShapeFits(n, n, lda) && ShapeFits(n, columns, ldb));
  return FromDriver(Enqueue(StreamOf(handle),
                            PotrsOperation<Real>{n, columns, lda, ldb, PartOf(fill)},
                            {Reads(a, BytesOf<Real>(n, n, lda)),
                             Updates(b, BytesOf<Real>(n, columns, ldb)), Writes(info, sizeof(int))},
                            2.0 * n * n * columns));
}

template <typename Real>
cusolverStatus_t Geqrf(cusolverDnHandle_t handle, int rows, int columns, Real* a, int lda,
                       Real* tau, Real* work, int work_count, int* info) {
  SPILLWAY_SOLVER_CHECK(ShapeFits(rows, columns, lda) && work_count >= std::max(columns, 1));
  const int rank = std::min(rows, columns);
  return FromDriver(
      Enqueue(StreamOf(handle), GeqrfOperation<Real>{rows, columns, lda, work_count},
              {Updates(a, BytesOf<Real>(rows, columns, lda)), Writes(tau, rank * sizeof(Real)),
               Clobbers(work, work_count * sizeof(Real)), Writes(info, sizeof(int))},
              2.0 * rows * rank * columns));
}

template <typename Real>
cusolverStatus_t Ormqr(cusolverDnHandle_t handle, cublasSideMode_t side,
                       cublasOperation_t operation, int rows, int columns, int reflectors,
                       const Real* a, int lda, const Real* tau, Real* c, int ldc, Real* work,
                       int work_count, int* info) {
  const bool is_left = side == CUBLAS_SIDE_LEFT;
  const int a_rows = is_left ? rows : columns;
  SPILLWAY_SOLVER_CHECK(ShapeFits(a_rows, reflectors, lda) && ShapeFits(rows, columns, ldc) &&
                        reflectors <= a_rows &&
                        work_count >= std::max(is_left ? columns : rows, 1));
  return FromDriver(
      Enqueue(StreamOf(handle),
              OrmqrOperation<Real>{rows, columns, reflectors, lda, ldc, work_count,
                                   is_left ? 'L' : 'R', TurnedBy(operation)},
              {Reads(a, BytesOf<Real>(a_rows, reflectors, lda)),
               Reads(tau, reflectors * sizeof(Real)), Updates(c, BytesOf<Real>(rows, columns, ldc)),
               Clobbers(work, work_count * sizeof(Real)), Writes(info, sizeof(int))},
              4.0 * rows * columns * reflectors));
}

}  // namespace
}  // namespace spillway::simulator::solver

namespace solver = spillway::simulator::solver;

extern "C" {

#define SPILLWAY_SOLVER_DENSE(T, Real)                                                             \
  cusolverStatus_t cusolverDn##T##getrf_bufferSize(cusolverDnHandle_t handle, int rows,            \
                                                   int columns, Real*, int lda, int* count) {      \
    return solver::RoomFor(handle, solver::ShapeFits(rows, columns, lda), columns, count);         \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##getrf(cusolverDnHandle_t handle, int rows, int columns, Real* a, \
                                        int lda, Real* work, int* pivots, int* info) {             \
    return solver::Getrf(handle, rows, columns, a, lda, work, pivots, info);                       \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##getrs(cusolverDnHandle_t handle, cublasOperation_t operation,    \
                                        int n, int columns, const Real* a, int lda,                \
                                        const int* pivots, Real* b, int ldb, int* info) {          \
    return solver::Getrs(handle, operation, n, columns, a, lda, pivots, b, ldb, info);             \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##potrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t,    \
                                                   int n, Real*, int lda, int* count) {            \
    return solver::RoomFor(handle, solver::ShapeFits(n, n, lda), n, count);                        \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##potrf(cusolverDnHandle_t handle, cublasFillMode_t fill, int n,   \
                                        Real* a, int lda, Real* work, int work_count, int* info) { \
    return solver::Potrf(handle, fill, n, a, lda, work, work_count, info);                         \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##potrs(cusolverDnHandle_t handle, cublasFillMode_t fill, int n,   \
                                        int columns, const Real* a, int lda, Real* b, int ldb,     \
                                        int* info) {                                               \
    return solver::Potrs(handle, fill, n, columns, a, lda, b, ldb, info);                          \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##geqrf_bufferSize(cusolverDnHandle_t handle, int rows,            \
                                                   int columns, Real*, int lda, int* count) {      \
    return solver::RoomFor(handle, solver::ShapeFits(rows, columns, lda),                          \
                           std::int64_t{columns} * solver::kBlockColumns, count);                  \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##geqrf(cusolverDnHandle_t handle, int rows, int columns, Real* a, \
                                        int lda, Real* tau, Real* work, int work_count,            \
                                        int* info) {                                               \
    return solver::Geqrf(handle, rows, columns, a, lda, tau, work, work_count, info);              \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##ormqr_bufferSize(                                                \
      cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t, int rows, int columns,  \
      int, const Real*, int, const Real*, const Real*, int ldc, int* count) {                      \
    const std::int64_t other = side == CUBLAS_SIDE_LEFT ? columns : rows;                          \
    return solver::RoomFor(handle, solver::ShapeFits(rows, columns, ldc),                          \
                           other * solver::kBlockColumns, count);                                  \
  }                                                                                                \
  cusolverStatus_t cusolverDn##T##ormqr(cusolverDnHandle_t handle, cublasSideMode_t side,          \
                                        cublasOperation_t operation, int rows, int columns,        \
                                        int reflectors, const Real* a, int lda, const Real* tau,   \
                                        Real* c, int ldc, Real* work, int work_count, int* info) { \
    return solver::Ormqr(handle, side, operation, rows, columns, reflectors, a, lda, tau, c, ldc,  \
                         work, work_count, info);                                                  \
  }
SPILLWAY_SOLVER_DENSE(S, float)
SPILLWAY_SOLVER_DENSE(D, double)
#undef SPILLWAY_SOLVER_DENSE

}  // extern "C"
