#include "simulator/dnn/cublas/handle.h"

#include <cblas.h>

#include <cstring>
#include <new>

#include "simulator/dnn/cublas/status_name.h"

namespace spillway::simulator::dnn {

cublasStatus_t FromDriver(CUresult result) {
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t ResultTarget(cublasHandle_t handle, void* result, std::size_t size_bytes,
                            void** target) {
  *target = result;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_SUCCESS;
  constexpr std::size_t kSlotBytes = 64;
  if (size_bytes > kSlotBytes) return CUBLAS_STATUS_INTERNAL_ERROR;
  if (handle->result_slot == nullptr &&
      Driver()->MemHostAlloc(&handle->result_slot, kSlotBytes, CU_MEMHOSTALLOC_DEVICEMAP) !=
          CUDA_SUCCESS) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  *target = handle->result_slot;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t FetchResult(cublasHandle_t handle, void* result, std::size_t size_bytes) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_SUCCESS;
  if (Driver()->StreamSynchronize(StreamOf(handle)) != CUDA_SUCCESS)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  std::memcpy(result, handle->result_slot, size_bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  SPILLWAY_BLAS_REQUIRE(EnsureContext(), CUBLAS_STATUS_NOT_INITIALIZED);
  openblas_set_num_threads(1);
  *handle = new (std::nothrow) cublasContext{};
  return *handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  if (handle->result_slot != nullptr) Driver()->MemFreeHost(handle->result_slot);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  SPILLWAY_BLAS_REQUIRE(version != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(int* version) { return cublasGetVersion_v2(nullptr, version); }

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  SPILLWAY_BLAS_REQUIRE(value != nullptr && type >= MAJOR_VERSION && type <= PATCH_LEVEL,
                        CUBLAS_STATUS_INVALID_VALUE);
  *value = parts[type];
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

// As documented, a new stream returns the handle to the library's own workspace.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(stream != nullptr, CUBLAS_STATUS_INVALID_VALUE);
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t workspace_bytes) {
  constexpr std::uintptr_t kAlignment = 256;
  SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED);
  SPILLWAY_BLAS_REQUIRE(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0,
                        CUBLAS_STATUS_INVALID_VALUE);
  handle->workspace = workspace;
  handle->workspace_bytes = workspace != nullptr ? workspace_bytes : 0;
  return CUBLAS_STATUS_SUCCESS;
}

#define SPILLWAY_BLAS_MODE(Set, Get, type, field)                            \
  cublasStatus_t Set(cublasHandle_t handle, type value) {                    \
    SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED); \
    handle->field = value;                                                   \
    return CUBLAS_STATUS_SUCCESS;                                            \
  }                                                                          \
  cublasStatus_t Get(cublasHandle_t handle, type* value) {                   \
    SPILLWAY_BLAS_REQUIRE(handle != nullptr, CUBLAS_STATUS_NOT_INITIALIZED); \
    SPILLWAY_BLAS_REQUIRE(value != nullptr, CUBLAS_STATUS_INVALID_VALUE);    \
    *value = handle->field;                                                  \
    return CUBLAS_STATUS_SUCCESS;                                            \
  }
SPILLWAY_BLAS_MODE(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t,
                   pointer_mode)
SPILLWAY_BLAS_MODE(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math_mode)
SPILLWAY_BLAS_MODE(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, atomics_mode)
SPILLWAY_BLAS_MODE(cublasSetSmCountTarget, cublasGetSmCountTarget, int, multiprocessor_target)
#undef SPILLWAY_BLAS_MODE

const char* cublasGetStatusName(cublasStatus_t status) {
  return spillway::simulator::dnn::BlasStatusName(status);
}

const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback) { return CUBLAS_STATUS_SUCCESS; }

// Only this call of the interface before version 2 can report that it is not simulated.
cublasStatus_t cublasGetError(void) { return CUBLAS_STATUS_NOT_SUPPORTED; }

}  // extern "C"
