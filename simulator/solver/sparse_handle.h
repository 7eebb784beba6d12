// The handle of cuSOLVER's sparse part. It owns one pinned word, for results that programs ask for
// in host memory.
#pragma once

#define DISABLE_CUSPARSE_DEPRECATED
#include <cusolverSp.h>

#include "simulator/solver/band.h"
#include "simulator/solver/handle.h"
#include "simulator/sparse/handle.h"

struct cusolverSpContext {
  cudaStream_t stream;
  int* result;  // pinned
};

namespace spillway::simulator::solver {

inline CUstream StreamOf(cusolverSpHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

inline int BaseOf(const cusparseMatDescr_t description) {
  return description->base == CUSPARSE_INDEX_BASE_ONE ? 1 : 0;
}

inline cusolverStatus_t CheckMatrix(cusolverSpHandle_t handle, int rows, int count,
                                    const cusparseMatDescr_t description) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(rows > 0 && count > 0 && description != nullptr,
                          CUSOLVER_STATUS_INVALID_VALUE);
  const bool is_general = description->type == CUSPARSE_MATRIX_TYPE_GENERAL;
  return is_general ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
}

}  // namespace spillway::simulator::solver
