// Sums use a fixed order, because OpenBLAS' order may depend on alignment.
#include <cmath>
#include <cstdlib>

#include "simulator/dnn/common/reduction.h"
#include "simulator/dnn/cublas/handle.h"

namespace spillway::simulator::dnn {
namespace {

// A negative step begins at the far end, as in BLAS.
template <typename Pointer>
Pointer Start(Pointer base, std::int64_t n, std::int64_t step) {
  return step < 0 ? base - (n - 1) * step : base;
}

enum class Update { kAxpy, kScale, kCopy, kSwap };

template <typename Real, Update kUpdate>
struct UpdateOperation {
  static constexpr char kName[] = "cublas_vector_update";
  static constexpr int kOperands = 3;  // x, y, alpha
  std::int64_t n;
  std::int64_t x_step;
  std::int64_t y_step;
  Scalar alpha;

  void Run(void* const* operands) const {
    auto* x = Start(static_cast<Real*>(operands[0]), n, x_step);
    auto* y = Start(static_cast<Real*>(operands[1]), n, y_step);
    const auto factor = static_cast<Real>(alpha.Get(operands[2]));
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (kUpdate == Update::kAxpy) y[i * y_step] += factor * x[i * x_step];
      if constexpr (kUpdate == Update::kScale)
        x[i * x_step] = factor == 0 ? Real(0) : factor * x[i * x_step];
      if constexpr (kUpdate == Update::kCopy) y[i * y_step] = x[i * x_step];
      if constexpr (kUpdate == Update::kSwap) std::swap(x[i * x_step], y[i * y_step]);
    }
  }
};

enum class Reduction { kDot, kNorm, kAbsoluteSum, kLargest, kSmallest };

template <typename Real, Reduction kReduction, typename Result>
struct ReductionOperation {
  static constexpr char kName[] = "cublas_vector_reduction";
  static constexpr int kOperands = 3;  // x, y, result
  std::int64_t n;
  std::int64_t x_step;
  std::int64_t y_step;

  void Run(void* const* operands) const {
    const auto* x = Start(static_cast<const Real*>(operands[0]), n, x_step);
    const auto* y = Start(static_cast<const Real*>(operands[1]), n, y_step);
    *static_cast<Result*>(operands[2]) = Reduce(x, y);
  }

  Result Reduce(const Real* x, const Real* y) const {
    const auto at = [&](std::int64_t i) { return static_cast<double>(x[i * x_step]); };
    if constexpr (kReduction == Reduction::kDot) {
      return static_cast<Result>(
          SumOf(n, [&](std::int64_t i) { return at(i) * static_cast<double>(y[i * y_step]); }));
    } else if constexpr (kReduction == Reduction::kNorm) {
      return static_cast<Result>(
          std::sqrt(SumOf(n, [&](std::int64_t i) { return at(i) * at(i); })));
    } else if constexpr (kReduction == Reduction::kAbsoluteSum) {
      return static_cast<Result>(SumOf(n, [&](std::int64_t i) { return std::abs(at(i)); }));
    } else {
      return Extreme(at);
    }
  }

  // Counted from 1; 0 for an empty vector.
  template <typename At>
  Result Extreme(At at) const {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      const bool larger = std::abs(at(i)) > std::abs(at(best));
      const bool smaller = std::abs(at(i)) < std::abs(at(best));
      if (kReduction == Reduction::kLargest ? larger : smaller) best = i;
    }
    return static_cast<Result>(n > 0 ? best + 1 : 0);
  }
};

template <typename Real, Update kUpdate>
cublasStatus_t RunUpdate(cublasHandle_t handle, std::int64_t n, const Real* alpha, const Real* x,
                         std::int64_t x_step, Real* y, std::int64_t y_step) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  constexpr bool kHasScalar = kUpdate == Update::kAxpy || kUpdate == Update::kScale;
  if (n <= 0 || (kUpdate == Update::kScale && x_step <= 0)) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(!kHasScalar || alpha != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  const Scalar scalar =
      kHasScalar ? ScalarArgument(handle, kNumberOf<Real>, alpha) : Scalar{kNumberOf<Real>, 0, 0};
  const std::uint64_t x_bytes = VectorBytes(n, x_step, sizeof(Real));
  const bool writes_x = kUpdate == Update::kScale || kUpdate == Update::kSwap;
  const Operand x_operand = writes_x ? Updates(const_cast<Real*>(x), x_bytes) : Reads(x, x_bytes);
  const std::uint64_t y_bytes = VectorBytes(n, y_step, sizeof(Real));
  const Operand y_operand = kUpdate == Update::kCopy ? Writes(y, y_bytes) : Updates(y, y_bytes);
  return FromDriver(
      Enqueue(StreamOf(handle), UpdateOperation<Real, kUpdate>{n, x_step, y_step, scalar},
              {x_operand, y_operand, ScalarOperand(scalar, alpha)}, 2.0 * static_cast<double>(n)));
}

template <typename Real, Reduction kReduction, typename Result>
cublasStatus_t RunReduction(cublasHandle_t handle, std::int64_t n, const Real* x,
                            std::int64_t x_step, const Real* y, std::int64_t y_step,
                            Result* result) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(result != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  const bool empty = n <= 0 || (kReduction != Reduction::kDot && x_step <= 0);
  const std::int64_t count = empty ? 0 : n;
  void* target = nullptr;
  cublasStatus_t status = ResultTarget(handle, result, sizeof(Result), &target);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const ReductionOperation<Real, kReduction, Result> operation = {count, x_step, y_step};
  status = FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Reads(x, VectorBytes(count, x_step, sizeof(Real))),
               Reads(y, VectorBytes(count, y_step, sizeof(Real))), Writes(target, sizeof(Result))},
              2.0 * static_cast<double>(count)));
  return status == CUBLAS_STATUS_SUCCESS ? FetchResult(handle, result, sizeof(Result)) : status;
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_LEVEL1(T, Real, Int, suffix)                                              \
  cublasStatus_t cublas##T##axpy##suffix(cublasHandle_t h, Int n, const Real* alpha,            \
                                         const Real* x, Int x_step, Real* y, Int y_step) {      \
    return RunUpdate<Real, Update::kAxpy>(h, n, alpha, x, x_step, y, y_step);                   \
  }                                                                                             \
  cublasStatus_t cublas##T##scal##suffix(cublasHandle_t h, Int n, const Real* alpha, Real* x,   \
                                         Int x_step) {                                          \
    return RunUpdate<Real, Update::kScale>(h, n, alpha, x, x_step, nullptr, 1);                 \
  }                                                                                             \
  cublasStatus_t cublas##T##copy##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,    \
                                         Real* y, Int y_step) {                                 \
    return RunUpdate<Real, Update::kCopy>(h, n, nullptr, x, x_step, y, y_step);                 \
  }                                                                                             \
  cublasStatus_t cublas##T##swap##suffix(cublasHandle_t h, Int n, Real* x, Int x_step, Real* y, \
                                         Int y_step) {                                          \
    return RunUpdate<Real, Update::kSwap>(h, n, nullptr, x, x_step, y, y_step);                 \
  }                                                                                             \
  cublasStatus_t cublas##T##dot##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,     \
                                        const Real* y, Int y_step, Real* result) {              \
    return RunReduction<Real, Reduction::kDot>(h, n, x, x_step, y, y_step, result);             \
  }                                                                                             \
  cublasStatus_t cublas##T##nrm2##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,    \
                                         Real* result) {                                        \
    return RunReduction<Real, Reduction::kNorm>(h, n, x, x_step,                                \
                                                static_cast<const Real*>(nullptr), 1, result);  \
  }                                                                                             \
  cublasStatus_t cublas##T##asum##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,    \
                                         Real* result) {                                        \
    return RunReduction<Real, Reduction::kAbsoluteSum>(                                         \
        h, n, x, x_step, static_cast<const Real*>(nullptr), 1, result);                         \
  }
#define SPILLWAY_BLAS_EXTREMES(t, Real, Int, suffix)                                               \
  cublasStatus_t cublasI##t##amax##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,      \
                                          Int* result) {                                           \
    return RunReduction<Real, Reduction::kLargest>(h, n, x, x_step,                                \
                                                   static_cast<const Real*>(nullptr), 1, result);  \
  }                                                                                                \
  cublasStatus_t cublasI##t##amin##suffix(cublasHandle_t h, Int n, const Real* x, Int x_step,      \
                                          Int* result) {                                           \
    return RunReduction<Real, Reduction::kSmallest>(h, n, x, x_step,                               \
                                                    static_cast<const Real*>(nullptr), 1, result); \
  }
SPILLWAY_BLAS_LEVEL1(S, float, int, _v2)
SPILLWAY_BLAS_LEVEL1(S, float, int64_t, _v2_64)
SPILLWAY_BLAS_LEVEL1(D, double, int, _v2)
SPILLWAY_BLAS_LEVEL1(D, double, int64_t, _v2_64)
SPILLWAY_BLAS_EXTREMES(s, float, int, _v2)
SPILLWAY_BLAS_EXTREMES(s, float, int64_t, _v2_64)
SPILLWAY_BLAS_EXTREMES(d, double, int, _v2)
SPILLWAY_BLAS_EXTREMES(d, double, int64_t, _v2_64)
#undef SPILLWAY_BLAS_LEVEL1
#undef SPILLWAY_BLAS_EXTREMES

}  // extern "C"
