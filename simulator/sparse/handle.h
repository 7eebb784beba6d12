// The simulated cuSPARSE handle and the descriptors.
//
// Invariants
//  1. Scalars in host memory are copied at the call, those in device memory are read at execution.
//  2. What a call writes into the buffer of its analysis, its solution reads: a lost buffer shows.
#pragma once

#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "simulator/dnn/cublas/number.h"

struct cusparseContext {
  cudaStream_t stream;
  cusparsePointerMode_t pointer_mode;
};

struct cusparseMatDescr {
  cusparseMatrixType_t type;
  cusparseFillMode_t fill;
  cusparseDiagType_t diagonal;
  cusparseIndexBase_t base;
};

struct cusparseDnVecDescr {
  std::int64_t size;
  void* values;
  cudaDataType type;
};

struct cusparseSpVecDescr {
  std::int64_t size, count;
  void* indices;
  void* values;
  cusparseIndexType_t index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
};

struct cusparseDnMatDescr {
  std::int64_t rows, columns, leading;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
  int batch_count;
  std::int64_t batch_stride;
};

// CSR, or coordinates: then `offsets` has a row per value.
struct cusparseSpMatDescr {
  std::int64_t rows, columns, count;
  void* offsets;
  void* indices;
  void* values;
  cusparseIndexType_t offset_type, index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
  cusparseFormat_t format;
  cusparseFillMode_t fill;
  cusparseDiagType_t diagonal;
};

struct cusparseSpSVDescr {
  void* buffer;  // of the analysis; null before it
  const void* new_values;
};

namespace spillway::simulator::sparse {

using dnn::Clobbers;
using dnn::Enqueue;
using dnn::EnsureContext;
using dnn::Number;
using dnn::NumberBytes;
using dnn::NumberOf;
using dnn::Operand;
using dnn::Reads;
using dnn::Scalar;
using dnn::ScalarOperand;
using dnn::ScaledOutput;
using dnn::Updates;
using dnn::Writes;

inline CUstream StreamOf(cusparseHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

inline cusparseStatus_t FromDriver(CUresult result) {
  return result == CUDA_SUCCESS ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

inline Scalar ScalarArgument(cusparseHandle_t handle, Number number, const void* given) {
  return dnn::ScalarArgument(handle->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE, number, given);
}

inline bool IsFloating(cudaDataType type) { return type == CUDA_R_32F || type == CUDA_R_64F; }

inline std::int64_t IndexBytes(cusparseIndexType_t type) {
  return type == CUSPARSE_INDEX_64I ? 8 : 4;
}

inline bool IndexIsSimulated(cusparseIndexType_t type) {
  return type == CUSPARSE_INDEX_32I || type == CUSPARSE_INDEX_64I;
}

}  // namespace spillway::simulator::sparse

#define SPILLWAY_SPARSE_REQUIRE(condition, status) \
  do {                                             \
    if (!(condition)) return status;               \
  } while (false)
