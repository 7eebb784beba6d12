#include "simulator/solver/sparse_handle.h"

#include <new>

using spillway::simulator::dnn::Driver;
using spillway::simulator::solver::EnsureContext;

extern "C" {

cusolverStatus_t cusolverSpCreate(cusolverSpHandle_t* handle) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  SPILLWAY_SOLVER_REQUIRE(EnsureContext(), CUSOLVER_STATUS_NOT_INITIALIZED);
  void* result = nullptr;
  SPILLWAY_SOLVER_REQUIRE(
      Driver()->MemHostAlloc(&result, sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS,
      CUSOLVER_STATUS_ALLOC_FAILED);
  *handle = new (std::nothrow) cusolverSpContext{nullptr, static_cast<int*>(result)};
  return *handle != nullptr ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverSpDestroy(cusolverSpHandle_t handle) {
  if (handle != nullptr) Driver()->MemFreeHost(handle->result);
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpSetStream(cusolverSpHandle_t handle, cudaStream_t stream) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverSpGetStream(cusolverSpHandle_t handle, cudaStream_t* stream) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(stream != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *stream = handle->stream;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
