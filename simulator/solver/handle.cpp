#include "simulator/solver/handle.h"

#include <new>

using spillway::simulator::solver::EnsureContext;

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  SPILLWAY_SOLVER_REQUIRE(EnsureContext(), CUSOLVER_STATUS_NOT_INITIALIZED);
  *handle = new (std::nothrow) cusolverDnContext{nullptr};
  return *handle != nullptr ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t* stream) {
  SPILLWAY_SOLVER_REQUIRE(handle != nullptr, CUSOLVER_STATUS_NOT_INITIALIZED);
  SPILLWAY_SOLVER_REQUIRE(stream != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *stream = handle->stream;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverGetVersion(int* version) {
  SPILLWAY_SOLVER_REQUIRE(version != nullptr, CUSOLVER_STATUS_INVALID_VALUE);
  *version = CUSOLVER_VERSION;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH};
  SPILLWAY_SOLVER_REQUIRE(value != nullptr && type >= MAJOR_VERSION && type <= PATCH_LEVEL,
                          CUSOLVER_STATUS_INVALID_VALUE);
  *value = parts[type];
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
