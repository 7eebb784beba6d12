// The simulated cuSOLVER handles and statuses. One call per handle at a time, as in the real
// library.
#pragma once

#include <cusolverDn.h>

#include "simulator/dnn/common/operation.h"

struct cusolverDnContext {
  cudaStream_t stream;
};

namespace spillway::simulator::solver {

using dnn::Clobbers;
using dnn::Enqueue;
using dnn::EnsureContext;
using dnn::Reads;
using dnn::Updates;
using dnn::Writes;

inline CUstream StreamOf(cusolverDnHandle_t handle) {
  return reinterpret_cast<CUstream>(handle->stream);
}

inline cusolverStatus_t FromDriver(CUresult result) {
  return result == CUDA_SUCCESS ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

}  // namespace spillway::simulator::solver

#define SPILLWAY_SOLVER_REQUIRE(condition, status) \
  do {                                             \
    if (!(condition)) return status;               \
  } while (false)
