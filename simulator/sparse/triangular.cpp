// Triangular solutions (SpSV). The analysis finds each row's diagonal and keeps it in the buffer.
#include <algorithm>
#include <new>

#include "simulator/sparse/matrix.h"

namespace spillway::simulator::sparse {
namespace {

constexpr std::int64_t kNoDiagonal = -1;

std::uint64_t BufferBytes(cusparseConstSpMatDescr_t a) {
  return std::max<std::uint64_t>(1, a->rows) * sizeof(std::int64_t);
}

struct AnalyseOperation {
  static constexpr char kName[] = "cusparse_triangle_analysis";
  static constexpr int kOperands = 3;  // offsets, indices, buffer
  SparseShape shape;

  void Run(void* const* operands) const {
    const SparseView<float> a(shape, operands[0], operands[1], nullptr);
    auto* diagonals = static_cast<std::int64_t*>(operands[2]);
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      diagonals[row] = kNoDiagonal;
      for (std::int64_t i = a.Begin(row); i < a.End(row); ++i) {
        if (a.Column(i) == row) diagonals[row] = i;
      }
    }
  }
};

// Values beside the triangle do not count: one array may hold both factors of an LU.
template <typename Real>
struct SolveOperation {
  static constexpr char kName[] = "cusparse_triangle_solve";
  static constexpr int kOperands = 7;  // offsets, indices, values, buffer, x, y, alpha
  SparseShape shape;
  std::int32_t lower, unit, transposed;
  Scalar alpha;

  void Run(void* const* operands) const {
    const SparseView<Real> a(shape, operands[0], operands[1], operands[2]);
    const auto* diagonals = static_cast<const std::int64_t*>(operands[3]);
    const auto* x = static_cast<const Real*>(operands[4]);
    auto* y = static_cast<Real*>(operands[5]);
    const auto factor = static_cast<Real>(alpha.Get(operands[6]));
    for (std::int64_t row = 0; row < shape.rows; ++row) y[row] = factor * x[row];
    const bool upwards = (lower != 0) == (transposed != 0);
    for (std::int64_t step = 0; step < shape.rows; ++step) {
      const std::int64_t row = upwards ? shape.rows - 1 - step : step;
      if (transposed) {
        SolveColumn(a, diagonals, y, row);
      } else {
        SolveRow(a, diagonals, y, row);
      }
    }
  }

  bool IsInside(std::int64_t row, std::int64_t column) const {
    return lower ? column < row : column > row;
  }
  Real Divided(const SparseView<Real>& a, std::int64_t diagonal, Real value) const {
    if (unit) return value;
    return value / (diagonal == kNoDiagonal ? Real(0) : a.Value(diagonal));
  }

  void SolveRow(const SparseView<Real>& a, const std::int64_t* diagonals, Real* y,
                std::int64_t row) const {
    Real sum = y[row];
    for (std::int64_t i = a.Begin(row); i < a.End(row); ++i) {
      if (IsInside(row, a.Column(i))) sum -= a.Value(i) * y[a.Column(i)];
    }
    y[row] = Divided(a, diagonals[row], sum);
  }

  void SolveColumn(const SparseView<Real>& a, const std::int64_t* diagonals, Real* y,
                   std::int64_t row) const {
    y[row] = Divided(a, diagonals[row], y[row]);
    for (std::int64_t i = a.Begin(row); i < a.End(row); ++i) {
      if (IsInside(row, a.Column(i))) y[a.Column(i)] -= a.Value(i) * y[row];
    }
  }
};

cusparseStatus_t Check(cusparseHandle_t handle, cusparseConstSpMatDescr_t a,
                       cusparseConstDnVecDescr_t x, cusparseConstDnVecDescr_t y,
                       cusparseSpSVDescr_t state, cudaDataType compute) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  const cusparseStatus_t status = CheckMatrix(a);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(
      x && y && state && a->rows == a->columns && x->size == a->rows && y->size == a->rows,
      CUSPARSE_STATUS_INVALID_VALUE);
  const bool simulated = a->format == CUSPARSE_FORMAT_CSR && x->type == a->type &&
                         y->type == a->type && compute == a->type;
  return simulated ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

template <typename Real>
cusparseStatus_t Solve(cusparseHandle_t handle, bool transposed, const void* alpha,
                       cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                       cusparseConstDnVecDescr_t y, cusparseSpSVDescr_t state) {
  const SparseShape shape = ShapeOf(a);
  const SolveOperation<Real> operation = {shape, a->fill == CUSPARSE_FILL_MODE_LOWER,
                                          a->diagonal == CUSPARSE_DIAG_TYPE_UNIT, transposed,
                                          ScalarArgument(handle, dnn::kNumberOf<Real>, alpha)};
  const void* const values = state->new_values != nullptr ? state->new_values : a->values;
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Reads(a->offsets, shape.OffsetBytes()), Reads(a->indices, shape.IndexBytes()),
               Reads(values, shape.count * sizeof(Real)), Reads(state->buffer, BufferBytes(a)),
               Reads(x->values, shape.rows * sizeof(Real)),
               Writes(y->values, shape.rows * sizeof(Real)), ScalarOperand(operation.alpha, alpha)},
              2.0 * static_cast<double>(shape.count)));
}

}  // namespace
}  // namespace spillway::simulator::sparse

using namespace spillway::simulator::sparse;

extern "C" {

cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t* state) {
  SPILLWAY_SPARSE_REQUIRE(state != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  *state = new (std::nothrow) cusparseSpSVDescr{};
  return *state != nullptr ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED;
}
cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t state) {
  delete state;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSV_bufferSize(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                         cusparseDnVecDescr_t y, cudaDataType compute,
                                         cusparseSpSVAlg_t, cusparseSpSVDescr_t state,
                                         size_t* size_bytes) {
  const cusparseStatus_t status = Check(handle, a, x, y, state, compute);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(size_bytes != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  *size_bytes = BufferBytes(a);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSV_analysis(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                       cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                       cusparseDnVecDescr_t y, cudaDataType compute,
                                       cusparseSpSVAlg_t, cusparseSpSVDescr_t state, void* buffer) {
  const cusparseStatus_t status = Check(handle, a, x, y, state, compute);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(buffer != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  *state = {buffer, nullptr};
  const SparseShape shape = ShapeOf(a);
  return FromDriver(Enqueue(StreamOf(handle), AnalyseOperation{shape},
                            {Reads(a->offsets, shape.OffsetBytes()),
                             Reads(a->indices, shape.IndexBytes()), Writes(buffer, BufferBytes(a))},
                            static_cast<double>(shape.count)));
}

cusparseStatus_t cusparseSpSV_solve(cusparseHandle_t handle, cusparseOperation_t operation,
                                    const void* alpha, cusparseConstSpMatDescr_t a,
                                    cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y,
                                    cudaDataType compute, cusparseSpSVAlg_t,
                                    cusparseSpSVDescr_t state) {
  const cusparseStatus_t status = Check(handle, a, x, y, state, compute);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(alpha != nullptr && state->buffer != nullptr,
                          CUSPARSE_STATUS_INVALID_VALUE);
  const auto solve = a->type == CUDA_R_32F ? Solve<float> : Solve<double>;
  return solve(handle, operation != CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a, x, y, state);
}

// It brings only the diagonal, and is not simulated.
cusparseStatus_t cusparseSpSV_updateMatrix(cusparseHandle_t handle, cusparseSpSVDescr_t state,
                                           void* new_values, cusparseSpSVUpdate_t part) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  SPILLWAY_SPARSE_REQUIRE(state != nullptr && new_values != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  SPILLWAY_SPARSE_REQUIRE(part == CUSPARSE_SPSV_UPDATE_GENERAL, CUSPARSE_STATUS_NOT_SUPPORTED);
  state->new_values = new_values;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // extern "C"
