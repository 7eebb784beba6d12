#include <algorithm>

#include "simulator/sparse/matrix.h"

namespace spillway::simulator::sparse {
namespace {

// Rows and columns of any strides, in elements.
struct Dense {
  std::int64_t rows, columns, row_stride, column_stride;

  std::uint64_t ExtentBytes(std::int64_t element_bytes) const {
    if (rows == 0 || columns == 0) return 0;
    return ((rows - 1) * row_stride + (columns - 1) * column_stride + 1) * element_bytes;
  }
  std::int64_t At(std::int64_t row, std::int64_t column) const {
    return row * row_stride + column * column_stride;
  }
};

Dense DenseOf(cusparseConstDnMatDescr_t matrix, bool transposed) {
  const bool by_column = matrix->order == CUSPARSE_ORDER_COL;
  const Dense plain = {matrix->rows, matrix->columns, by_column ? 1 : matrix->leading,
                       by_column ? matrix->leading : 1};
  if (!transposed) return plain;
  return {plain.columns, plain.rows, plain.column_stride, plain.row_stride};
}

// Y = alpha op(A) X + beta Y. A row of A is summed in the order of its values.
template <typename Real>
struct ProductOperation {
  static constexpr char kName[] = "cusparse_product";
  static constexpr int kOperands = 8;  // offsets, indices, values, X, Y, alpha, beta, buffer
  SparseShape shape;
  std::int32_t transposed;
  Dense x, y;
  Scalar alpha, beta;

  void Run(void* const* operands) const {
    const SparseView<Real> a(shape, operands[0], operands[1], operands[2]);
    const auto* from = static_cast<const Real*>(operands[3]);
    auto* to = static_cast<Real*>(operands[4]);
    const auto factor = static_cast<Real>(alpha.Get(operands[5]));
    Scale(to, static_cast<Real>(beta.Get(operands[6])));
    for (std::int64_t column = 0; column < y.columns; ++column) {
      if (transposed || shape.is_coordinates) {
        Scatter(a, from, to, column, factor);
      } else {
        Gather(a, from, to, column, factor);
      }
    }
  }

  // A factor of 0 does not read.
  void Scale(Real* to, Real by) const {
    for (std::int64_t column = 0; column < y.columns; ++column) {
      for (std::int64_t row = 0; row < y.rows; ++row) {
        Real& value = to[y.At(row, column)];
        value = by == 0 ? Real(0) : by * value;
      }
    }
  }

  void Gather(const SparseView<Real>& a, const Real* from, Real* to, std::int64_t column,
              Real factor) const {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      Real sum = 0;
      for (std::int64_t i = a.Begin(row); i < a.End(row); ++i)
        sum += a.Value(i) * from[x.At(a.Column(i), column)];
      to[y.At(row, column)] += factor * sum;
    }
  }

  void Scatter(const SparseView<Real>& a, const Real* from, Real* to, std::int64_t column,
               Real factor) const {
    a.ForEach([&](std::int64_t row, std::int64_t inner, Real value) {
      const std::int64_t out = transposed ? inner : row;
      const std::int64_t in = transposed ? row : inner;
      to[y.At(out, column)] += factor * value * from[x.At(in, column)];
    });
  }
};

struct Call {
  cusparseHandle_t handle;
  bool transposed;
  const void* alpha;
  cusparseConstSpMatDescr_t a;
  Dense x;
  const void* x_values;
  const void* beta;
  Dense y;
  void* y_values;
  void* buffer;
  std::uint64_t buffer_bytes;
};

template <typename Real>
cusparseStatus_t Launch(const Call& call) {
  const Number number = dnn::kNumberOf<Real>;
  const SparseShape shape = ShapeOf(call.a);
  const ProductOperation<Real> operation = {shape,
                                            call.transposed,
                                            call.x,
                                            call.y,
                                            ScalarArgument(call.handle, number, call.alpha),
                                            ScalarArgument(call.handle, number, call.beta)};
  return FromDriver(Enqueue(
      StreamOf(call.handle), operation,
      {Reads(call.a->offsets, shape.OffsetBytes()), Reads(call.a->indices, shape.IndexBytes()),
       Reads(call.a->values, shape.count * sizeof(Real)),
       Reads(call.x_values, call.x.ExtentBytes(sizeof(Real))),
       ScaledOutput(operation.beta, call.y_values, call.y.ExtentBytes(sizeof(Real))),
       ScalarOperand(operation.alpha, call.alpha), ScalarOperand(operation.beta, call.beta),
       Writes(call.buffer, call.buffer_bytes)},
      2.0 * static_cast<double>(shape.count * std::max<std::int64_t>(1, call.y.columns))));
}

cusparseStatus_t Check(const Call& call, cudaDataType x_type, cudaDataType y_type,
                       cudaDataType compute) {
  SPILLWAY_SPARSE_REQUIRE(call.handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  SPILLWAY_SPARSE_REQUIRE(call.alpha != nullptr && call.beta != nullptr,
                          CUSPARSE_STATUS_INVALID_VALUE);
  const std::int64_t rows = call.transposed ? call.a->columns : call.a->rows;
  const std::int64_t inner = call.transposed ? call.a->rows : call.a->columns;
  SPILLWAY_SPARSE_REQUIRE(
      call.y.rows == rows && call.x.rows == inner && call.x.columns == call.y.columns,
      CUSPARSE_STATUS_INVALID_VALUE);
  const bool same = x_type == call.a->type && y_type == call.a->type && compute == call.a->type;
  return same ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_SUPPORTED;
}

cusparseStatus_t Multiply(const Call& call, cudaDataType x_type, cudaDataType y_type,
                          cudaDataType compute) {
  const cusparseStatus_t status = Check(call, x_type, y_type, compute);
  if (status != CUSPARSE_STATUS_SUCCESS || call.y.rows == 0 || call.y.columns == 0) return status;
  return call.a->type == CUDA_R_32F ? Launch<float>(call) : Launch<double>(call);
}

// The real library's buffers depend on its algorithm.
constexpr std::size_t kBufferBytes = 1024;

cusparseStatus_t TellBufferSize(cusparseHandle_t handle, cusparseConstSpMatDescr_t a,
                                std::size_t* size_bytes) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  const cusparseStatus_t status = CheckMatrix(a);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(size_bytes != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  *size_bytes = kBufferBytes;
  return CUSPARSE_STATUS_SUCCESS;
}

// y[index] = value of a sparse vector, or the other way round.
struct MoveOperation {
  static constexpr char kName[] = "cusparse_move";
  static constexpr int kOperands = 3;  // indices, sparse values, dense values
  std::int64_t count, element_bytes;
  std::int32_t wide, base, gathers;

  void Run(void* const* operands) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = (wide ? static_cast<const std::int64_t*>(operands[0])[i]
                                       : static_cast<const std::int32_t*>(operands[0])[i]) -
                                 base;
      char* const sparse = static_cast<char*>(operands[1]) + i * element_bytes;
      char* const dense = static_cast<char*>(operands[2]) + index * element_bytes;
      std::copy_n(gathers ? dense : sparse, element_bytes, gathers ? sparse : dense);
    }
  }
};

cusparseStatus_t Move(cusparseHandle_t handle, cusparseConstSpVecDescr_t sparse,
                      cusparseConstDnVecDescr_t dense, bool gathers) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  SPILLWAY_SPARSE_REQUIRE(sparse != nullptr && dense != nullptr && sparse->size == dense->size,
                          CUSPARSE_STATUS_INVALID_VALUE);
  const Number number = NumberOf(sparse->type);
  SPILLWAY_SPARSE_REQUIRE(number != Number::kUnsupported && sparse->type == dense->type &&
                              IndexIsSimulated(sparse->index_type),
                          CUSPARSE_STATUS_NOT_SUPPORTED);
  if (sparse->count == 0) return CUSPARSE_STATUS_SUCCESS;
  const std::int64_t bytes = NumberBytes(number);
  const Operand indices = Reads(sparse->indices, sparse->count * IndexBytes(sparse->index_type));
  const MoveOperation operation = {sparse->count, bytes, sparse->index_type == CUSPARSE_INDEX_64I,
                                   sparse->base == CUSPARSE_INDEX_BASE_ONE, gathers};
  const std::uint64_t sparse_bytes = sparse->count * bytes;
  const std::uint64_t dense_bytes = dense->size * bytes;
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {indices,
               gathers ? Writes(sparse->values, sparse_bytes) : Reads(sparse->values, sparse_bytes),
               gathers ? Reads(dense->values, dense_bytes) : Updates(dense->values, dense_bytes)},
              0));
}

}  // namespace
}  // namespace spillway::simulator::sparse

using namespace spillway::simulator::sparse;

extern "C" {

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t,
                                         const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, size_t* size_bytes) {
  return TellBufferSize(handle, a, size_bytes);
}
cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t,
                                         const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, void*) {
  SPILLWAY_SPARSE_REQUIRE(handle != nullptr, CUSPARSE_STATUS_NOT_INITIALIZED);
  return CheckMatrix(a);
}
cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t operation,
                              const void* alpha, cusparseConstSpMatDescr_t a,
                              cusparseConstDnVecDescr_t x, const void* beta, cusparseDnVecDescr_t y,
                              cudaDataType compute, cusparseSpMVAlg_t, void* buffer) {
  const cusparseStatus_t status = CheckMatrix(a);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(x != nullptr && y != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  return Multiply({handle, operation != CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a,
                   Dense{x->size, 1, 1, 1}, x->values, beta, Dense{y->size, 1, 1, 1}, y->values,
                   buffer, buffer != nullptr ? kBufferBytes : 0},
                  x->type, y->type, compute);
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t,
                                         cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t,
                                         const void*, cusparseDnMatDescr_t, cudaDataType,
                                         cusparseSpMMAlg_t, size_t* size_bytes) {
  return TellBufferSize(handle, a, size_bytes);
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t a_operation,
                              cusparseOperation_t b_operation, const void* alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void* beta, cusparseDnMatDescr_t c, cudaDataType compute,
                              cusparseSpMMAlg_t, void* buffer) {
  const cusparseStatus_t status = CheckMatrix(a);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  SPILLWAY_SPARSE_REQUIRE(b != nullptr && c != nullptr, CUSPARSE_STATUS_INVALID_VALUE);
  return Multiply({handle, a_operation != CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a,
                   DenseOf(b, b_operation != CUSPARSE_OPERATION_NON_TRANSPOSE), b->values, beta,
                   DenseOf(c, false), c->values, buffer, buffer != nullptr ? kBufferBytes : 0},
                  b->type, c->type, compute);
}

cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x,
                                 cusparseDnVecDescr_t y) {
  return Move(handle, x, y, false);
}
cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y,
                                cusparseSpVecDescr_t x) {
  return Move(handle, x, y, true);
}

}  // extern "C"
