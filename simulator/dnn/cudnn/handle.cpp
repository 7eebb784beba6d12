#include <cstdio>
#include <new>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

thread_local char last_error[256] = "";

}  // namespace

cudnnStatus_t Fail(cudnnStatus_t status, const char* reason) {
  std::snprintf(last_error, sizeof(last_error), "%s: %s", cudnnGetErrorString(status), reason);
  return status;
}

cudnnStatus_t FromDriver(CUresult result) {
  if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
  char reason[64];
  std::snprintf(reason, sizeof(reason), "cuLaunchKernel returned %d", static_cast<int>(result));
  return Fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, reason);
}

int DataTypeBytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
    case CUDNN_DATA_COMPLEX_FP32:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_COMPLEX_FP64:
      return 16;
    default:
      return 1;
  }
}

ElementType ElementTypeOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return ElementType::kFloat;
    case CUDNN_DATA_HALF:
      return ElementType::kHalf;
    case CUDNN_DATA_BFLOAT16:
      return ElementType::kBfloat16;
    default:
      return ElementType::kUnsupported;
  }
}

}  // namespace spillway::simulator::dnn

using spillway::simulator::dnn::CurrentDeviceRates;
using spillway::simulator::dnn::EnsureContext;
using spillway::simulator::dnn::Fail;

extern "C" {

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
size_t cudnnGetMaxDeviceVersion(void) { return 1210; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  SPILLWAY_DNN_REQUIRE(value != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const int parts[] = {CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL};
  SPILLWAY_DNN_REQUIRE(type >= MAJOR_VERSION && type <= PATCH_LEVEL, CUDNN_STATUS_BAD_PARAM);
  *value = parts[type];
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
#define SPILLWAY_DNN_NAME(name) \
  case name:                    \
    return #name
  switch (status) {
    SPILLWAY_DNN_NAME(CUDNN_STATUS_SUCCESS);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_INITIALIZED);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_INTERNAL_ERROR);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_EXECUTION_FAILED);
    SPILLWAY_DNN_NAME(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
#undef SPILLWAY_DNN_NAME
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message == nullptr || max_size == 0) return;
  std::snprintf(message, max_size, "%s", spillway::simulator::dnn::last_error);
  spillway::simulator::dnn::last_error[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(EnsureContext(), CUDNN_STATUS_NOT_INITIALIZED);
  *handle = new (std::nothrow) cudnnContext{nullptr, CurrentDeviceRates()};
  return *handle != nullptr ? CUDNN_STATUS_SUCCESS
                            : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && stream != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCallback(unsigned, void*, cudnnCallback_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* status,
                                     cudnnErrQueryMode_t, cudnnRuntimeTag_t*) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && status != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *status = CUDNN_STATUS_SUCCESS;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }

}  // extern "C"
