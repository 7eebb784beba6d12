#include "simulator/dnn/cublas/handle.h"

namespace spillway::simulator::dnn {
namespace {

// In bytes; a vector has a column per element.
struct Columns {
  std::int64_t column_bytes;
  std::int64_t columns;
};

struct Side {
  const void* pointer;
  std::int64_t pitch_bytes;
};

CUDA_MEMCPY2D CopyOf(Columns shape, Side from, Side to, bool to_device) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcHost = from.pointer;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from.pointer);
  copy.dstHost = const_cast<void*>(to.pointer);
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(to.pointer);
  copy.srcPitch = from.pitch_bytes;
  copy.dstPitch = to.pitch_bytes;
  copy.WidthInBytes = shape.column_bytes;
  copy.Height = shape.columns;
  return copy;
}

// Adjacent columns are one column: such a vector is one copy.
void Flatten(Columns* shape, Side* from, Side* to) {
  if (from->pitch_bytes != shape->column_bytes || to->pitch_bytes != shape->column_bytes) return;
  *shape = {shape->column_bytes * shape->columns, 1};
  from->pitch_bytes = shape->column_bytes;
  to->pitch_bytes = shape->column_bytes;
}

cublasStatus_t Transfer(Columns shape, Side from, Side to, bool to_device, CUstream stream,
                        bool wait) {
  SPILLWAY_BLAS_REQUIRE(EnsureContext(), CUBLAS_STATUS_NOT_INITIALIZED);
  if (shape.column_bytes == 0 || shape.columns == 0) return CUBLAS_STATUS_SUCCESS;
  SPILLWAY_BLAS_REQUIRE(from.pointer != nullptr && to.pointer != nullptr,
                        CUBLAS_STATUS_INVALID_VALUE);
  Flatten(&shape, &from, &to);
  const CUDA_MEMCPY2D copy = CopyOf(shape, from, to, to_device);
  CUresult result = Driver()->Memcpy2DAsync(&copy, stream);
  if (result == CUDA_SUCCESS && wait) result = Driver()->StreamSynchronize(stream);
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t TransferVector(std::int64_t n, std::int64_t element_bytes, const void* from,
                              std::int64_t from_step, const void* to, std::int64_t to_step,
                              bool to_device, cudaStream_t stream, bool wait) {
  SPILLWAY_BLAS_REQUIRE(n >= 0 && element_bytes > 0 && from_step > 0 && to_step > 0,
                        CUBLAS_STATUS_INVALID_VALUE);
  return Transfer({element_bytes, n}, {from, from_step * element_bytes},
                  {to, to_step * element_bytes}, to_device, stream, wait);
}

cublasStatus_t TransferMatrix(std::int64_t rows, std::int64_t columns, std::int64_t element_bytes,
                              const void* from, std::int64_t from_leading, const void* to,
                              std::int64_t to_leading, bool to_device, cudaStream_t stream,
                              bool wait) {
  SPILLWAY_BLAS_REQUIRE(rows >= 0 && columns >= 0 && element_bytes > 0 && from_leading > 0 &&
                            to_leading > 0 && from_leading >= rows && to_leading >= rows,
                        CUBLAS_STATUS_INVALID_VALUE);
  return Transfer({rows * element_bytes, columns}, {from, from_leading * element_bytes},
                  {to, to_leading * element_bytes}, to_device, stream, wait);
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

#define SPILLWAY_BLAS_TRANSFER(Direction, to_device, Int, suffix)                                 \
  cublasStatus_t cublas##Direction##Vector##suffix(Int n, Int bytes, const void* x, Int x_step,   \
                                                   void* y, Int y_step) {                         \
    return TransferVector(n, bytes, x, x_step, y, y_step, to_device, nullptr, true);              \
  }                                                                                               \
  cublasStatus_t cublas##Direction##VectorAsync##suffix(                                          \
      Int n, Int bytes, const void* x, Int x_step, void* y, Int y_step, cudaStream_t stream) {    \
    return TransferVector(n, bytes, x, x_step, y, y_step, to_device, stream, false);              \
  }                                                                                               \
  cublasStatus_t cublas##Direction##Matrix##suffix(Int rows, Int columns, Int bytes,              \
                                                   const void* a, Int lda, void* b, Int ldb) {    \
    return TransferMatrix(rows, columns, bytes, a, lda, b, ldb, to_device, nullptr, true);        \
  }                                                                                               \
  cublasStatus_t cublas##Direction##MatrixAsync##suffix(Int rows, Int columns, Int bytes,         \
                                                        const void* a, Int lda, void* b, Int ldb, \
                                                        cudaStream_t stream) {                    \
    return TransferMatrix(rows, columns, bytes, a, lda, b, ldb, to_device, stream, false);        \
  }
SPILLWAY_BLAS_TRANSFER(Set, true, int, )
SPILLWAY_BLAS_TRANSFER(Set, true, int64_t, _64)
SPILLWAY_BLAS_TRANSFER(Get, false, int, )
SPILLWAY_BLAS_TRANSFER(Get, false, int64_t, _64)
#undef SPILLWAY_BLAS_TRANSFER

}  // extern "C"
