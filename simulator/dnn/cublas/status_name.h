// The name of a status, as cuBLAS and cuBLASLt report it.
#pragma once

#include <cublas_api.h>

namespace spillway::simulator::dnn {

inline const char* BlasStatusName(cublasStatus_t status) {
#define SPILLWAY_BLAS_NAME(name) \
  case name:                     \
    return #name
  switch (status) {
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_SUCCESS);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_ALLOC_FAILED);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_INVALID_VALUE);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_MAPPING_ERROR);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_NOT_SUPPORTED);
    SPILLWAY_BLAS_NAME(CUBLAS_STATUS_LICENSE_ERROR);
  }
#undef SPILLWAY_BLAS_NAME
  return "CUBLAS_STATUS_UNKNOWN";
}

}  // namespace spillway::simulator::dnn
