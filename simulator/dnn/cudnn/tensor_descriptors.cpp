#include <algorithm>
#include <new>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

bool RefuseView(const char* reason, cudnnStatus_t code, cudnnStatus_t* status) {
  *status = Fail(code, reason);
  return false;
}

// Packed strides; NHWC means channels innermost for every rank.
void PackedStrides(cudnnTensorFormat_t format, int rank, const int* dims, int* strides) {
  int stride = 1;
  const bool channels_last = format == CUDNN_TENSOR_NHWC;
  if (channels_last) {
    strides[1] = 1;
    stride = dims[1];
  }
  for (int d = rank - 1; d >= 0; --d) {
    if (channels_last && d == 1) continue;
    strides[d] = stride;
    stride *= dims[d];
  }
}

bool AllPositive(int count, const int* values) {
  return std::all_of(values, values + count, [](int value) { return value > 0; });
}

cudnnStatus_t SetTensor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank,
                        const int* dims, const int* strides) {
  SPILLWAY_DNN_REQUIRE(tensor != nullptr && dims != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(AllPositive(rank, dims) && AllPositive(rank, strides),
                       CUDNN_STATUS_BAD_PARAM);
  *tensor = {type, rank, {}, {}};
  std::copy_n(dims, rank, tensor->dims);
  std::copy_n(strides, rank, tensor->strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetPackedTensor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                              cudnnDataType_t type, int rank, const int* dims) {
  SPILLWAY_DNN_REQUIRE(format != CUDNN_TENSOR_NCHW_VECT_C, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(dims != nullptr && rank >= 2 && rank <= CUDNN_DIM_MAX,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(AllPositive(rank, dims), CUDNN_STATUS_BAD_PARAM);
  int strides[CUDNN_DIM_MAX] = {};
  PackedStrides(format, rank, dims, strides);
  return SetTensor(tensor, type, rank, dims, strides);
}

cudnnStatus_t SetFilter(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                        cudnnTensorFormat_t format, int rank, const int* dims) {
  SPILLWAY_DNN_REQUIRE(filter != nullptr && dims != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank >= 3 && rank <= CUDNN_DIM_MAX && AllPositive(rank, dims),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(format != CUDNN_TENSOR_NCHW_VECT_C, CUDNN_STATUS_NOT_SUPPORTED);
  *filter = {type, format, rank, {}};
  std::copy_n(dims, rank, filter->dims);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

bool ViewOf(cudnnTensorDescriptor_t tensor, TensorView* view, cudnnStatus_t* status) {
  if (tensor == nullptr)
    return RefuseView("a tensor descriptor is null", CUDNN_STATUS_BAD_PARAM_NULL_POINTER, status);
  if (tensor->rank == 0)
    return RefuseView("a tensor descriptor was never set", CUDNN_STATUS_BAD_PARAM, status);
  const ElementType type = ElementTypeOf(tensor->type);
  if (type == ElementType::kUnsupported) {
    return RefuseView("element type is not simulated", CUDNN_STATUS_NOT_SUPPORTED, status);
  }
  if (tensor->rank > kMaxRank)
    return RefuseView("more than five dimensions", CUDNN_STATUS_NOT_SUPPORTED, status);
  *view = {type, tensor->rank, {}, {}};
  std::copy_n(tensor->dims, tensor->rank, view->dims);
  std::copy_n(tensor->strides, tensor->rank, view->strides);
  return true;
}

bool ViewOf(cudnnFilterDescriptor_t filter, TensorView* view, cudnnStatus_t* status) {
  if (filter == nullptr)
    return RefuseView("a filter descriptor is null", CUDNN_STATUS_BAD_PARAM_NULL_POINTER, status);
  if (filter->rank == 0)
    return RefuseView("a filter descriptor was never set", CUDNN_STATUS_BAD_PARAM, status);
  cudnnTensorStruct as_tensor = {filter->type, filter->rank, {}, {}};
  std::copy_n(filter->dims, filter->rank, as_tensor.dims);
  PackedStrides(filter->format, filter->rank, filter->dims, as_tensor.strides);
  return ViewOf(&as_tensor, view, status);
}

}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  SPILLWAY_DNN_REQUIRE(tensor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *tensor = new (std::nothrow) cudnnTensorStruct{};
  return *tensor != nullptr ? CUDNN_STATUS_SUCCESS
                            : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  const int dims[] = {n, c, h, w};
  return SetPackedTensor(tensor, format, type, 4, dims);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  const int dims[] = {n, c, h, w};
  const int strides[] = {n_stride, c_stride, h_stride, w_stride};
  return SetTensor(tensor, type, 4, dims, strides);
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t* type, int* n, int* c, int* h, int* w,
                                         int* n_stride, int* c_stride, int* h_stride,
                                         int* w_stride) {
  SPILLWAY_DNN_REQUIRE(tensor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(tensor->rank == 4, CUDNN_STATUS_BAD_PARAM);
  int* const dims[] = {n, c, h, w};
  int* const strides[] = {n_stride, c_stride, h_stride, w_stride};
  if (type != nullptr) *type = tensor->type;
  for (int d = 0; d < 4; ++d) {
    if (dims[d] != nullptr) *dims[d] = tensor->dims[d];
    if (strides[d] != nullptr) *strides[d] = tensor->strides[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int rank, const int dims[], const int strides[]) {
  SPILLWAY_DNN_REQUIRE(strides != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  return SetTensor(tensor, type, rank, dims, strides);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int dims[]) {
  return SetPackedTensor(tensor, format, type, rank, dims);
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int requested,
                                         cudnnDataType_t* type, int* rank, int dims[],
                                         int strides[]) {
  SPILLWAY_DNN_REQUIRE(tensor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  if (type != nullptr) *type = tensor->type;
  if (rank != nullptr) *rank = tensor->rank;
  const int count = std::clamp(requested, 0, tensor->rank);
  if (dims != nullptr) std::copy_n(tensor->dims, count, dims);
  if (strides != nullptr) std::copy_n(tensor->strides, count, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensor, size_t* size) {
  SPILLWAY_DNN_REQUIRE(tensor != nullptr && size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  size_t last = 0;
  for (int d = 0; d < tensor->rank; ++d) last += size_t(tensor->dims[d] - 1) * tensor->strides[d];
  *size = tensor->rank == 0 ? 0 : (last + 1) * DataTypeBytes(tensor->type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  SPILLWAY_DNN_REQUIRE(filter != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *filter = new (std::nothrow) cudnnFilterStruct{};
  return *filter != nullptr ? CUDNN_STATUS_SUCCESS
                            : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  delete filter;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return SetFilter(filter, type, format, 4, dims);
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format, int* k,
                                         int* c, int* h, int* w) {
  SPILLWAY_DNN_REQUIRE(filter != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(filter->rank == 4, CUDNN_STATUS_BAD_PARAM);
  int* const dims[] = {k, c, h, w};
  if (type != nullptr) *type = filter->type;
  if (format != nullptr) *format = filter->format;
  for (int d = 0; d < 4; ++d) {
    if (dims[d] != nullptr) *dims[d] = filter->dims[d];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int dims[]) {
  return SetFilter(filter, type, format, rank, dims);
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int requested,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format,
                                         int* rank, int dims[]) {
  SPILLWAY_DNN_REQUIRE(filter != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  if (type != nullptr) *type = filter->type;
  if (format != nullptr) *format = filter->format;
  if (rank != nullptr) *rank = filter->rank;
  if (dims != nullptr) std::copy_n(filter->dims, std::clamp(requested, 0, filter->rank), dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filter, size_t* size) {
  SPILLWAY_DNN_REQUIRE(filter != nullptr && size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *size = filter->rank == 0 ? 0 : DataTypeBytes(filter->type);
  for (int d = 0; d < filter->rank; ++d) *size *= filter->dims[d];
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
