// The simulated cuBLAS handle, scalars in host or device memory, and statuses.
//
// Invariants
//  1. Scalars in host memory are copied at the call, those in device memory are read at execution.
//  2. Results for host memory go through a pinned slot; the call waits for the stream and copies.
#pragma once

#include <cublas_api.h>

#include "simulator/dnn/cublas/number.h"

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
  cublasAtomicsMode_t atomics_mode;
  int multiprocessor_target;
  void* workspace;  // the program's, or null
  size_t workspace_bytes;
  void* result_slot;  // pinned; allocated at the first use
};

namespace spillway::simulator::dnn {

cublasStatus_t FromDriver(CUresult result);

inline CUstream StreamOf(cublasHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

inline Scalar ScalarArgument(cublasHandle_t handle, Number number, const void* given) {
  return ScalarArgument(handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE, number, given);
}

// The caller's device memory, or the pinned slot.
cublasStatus_t ResultTarget(cublasHandle_t handle, void* result, std::size_t size_bytes,
                            void** target);
cublasStatus_t FetchResult(cublasHandle_t handle, void* result, std::size_t size_bytes);

}  // namespace spillway::simulator::dnn

#define SPILLWAY_BLAS_REQUIRE(condition, status) \
  do {                                           \
    if (!(condition)) return status;             \
  } while (false)
