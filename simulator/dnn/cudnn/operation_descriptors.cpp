#include <algorithm>
#include <new>

#include "simulator/dnn/cudnn/descriptors.h"

using namespace spillway::simulator::dnn;

namespace {

template <typename Struct>
cudnnStatus_t Create(Struct** descriptor) {
  SPILLWAY_DNN_REQUIRE(descriptor != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *descriptor = new (std::nothrow) Struct{};
  return *descriptor != nullptr ? CUDNN_STATUS_SUCCESS
                                : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

template <typename Struct>
cudnnStatus_t Destroy(Struct* descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

// Outputs of Get functions may be null.
template <typename Value>
void Put(Value* where, Value value) {
  if (where != nullptr) *where = value;
}

bool AllAtLeast(int least, int count, const int* values) {
  return std::all_of(values, values + count, [least](int value) { return value >= least; });
}

constexpr int kMaxSpatialRank = CUDNN_DIM_MAX - 2;

cudnnStatus_t SetConvolution(cudnnConvolutionDescriptor_t convolution, int rank, const int* padding,
                             const int* stride, const int* dilation, cudnnConvolutionMode_t mode,
                             cudnnDataType_t compute_type) {
  SPILLWAY_DNN_REQUIRE(
      convolution != nullptr && padding != nullptr && stride != nullptr && dilation != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= kMaxSpatialRank, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(
      AllAtLeast(0, rank, padding) && AllAtLeast(1, rank, stride) && AllAtLeast(1, rank, dilation),
      CUDNN_STATUS_BAD_PARAM);
  convolution->spatial_rank = rank;
  std::copy_n(padding, rank, convolution->padding);
  std::copy_n(stride, rank, convolution->stride);
  std::copy_n(dilation, rank, convolution->dilation);
  convolution->mode = mode;
  convolution->compute_type = compute_type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetPooling(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                         cudnnNanPropagation_t nan, int rank, const int* window, const int* padding,
                         const int* stride) {
  SPILLWAY_DNN_REQUIRE(
      pooling != nullptr && window != nullptr && padding != nullptr && stride != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= kMaxSpatialRank, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(
      AllAtLeast(1, rank, window) && AllAtLeast(0, rank, padding) && AllAtLeast(1, rank, stride),
      CUDNN_STATUS_BAD_PARAM);
  *pooling = {mode, nan, rank, {}, {}, {}};
  std::copy_n(window, rank, pooling->window);
  std::copy_n(padding, rank, pooling->padding);
  std::copy_n(stride, rank, pooling->stride);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ConvolutionOutput(const cudnnConvolutionDescriptor_t convolution,
                                const cudnnTensorDescriptor_t input,
                                const cudnnFilterDescriptor_t filter, int* dims) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr && input != nullptr && filter != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const int rank = convolution->spatial_rank;
  SPILLWAY_DNN_REQUIRE(input->rank == rank + 2 && filter->rank == rank + 2,
                       CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  SPILLWAY_DNN_REQUIRE(input->dims[1] == filter->dims[1] * convolution->groups,
                       CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  dims[0] = input->dims[0];
  dims[1] = filter->dims[0];
  for (int d = 0; d < rank; ++d) {
    const int reach = convolution->dilation[d] * (filter->dims[d + 2] - 1) + 1;
    const int room = input->dims[d + 2] + 2 * convolution->padding[d] - reach;
    SPILLWAY_DNN_REQUIRE(room >= 0, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    dims[d + 2] = room / convolution->stride[d] + 1;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t PoolingOutput(const cudnnPoolingDescriptor_t pooling,
                            const cudnnTensorDescriptor_t input, int* dims) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr && input != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(input->rank == pooling->spatial_rank + 2,
                       CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  dims[0] = input->dims[0];
  dims[1] = input->dims[1];
  for (int d = 0; d < pooling->spatial_rank; ++d) {
    const int room = input->dims[d + 2] + 2 * pooling->padding[d] - pooling->window[d];
    SPILLWAY_DNN_REQUIRE(room >= 0, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    dims[d + 2] = room / pooling->stride[d] + 1;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  const cudnnStatus_t status = Create(convolution);
  if (status == CUDNN_STATUS_SUCCESS) (*convolution)->groups = 1;
  return status;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return Destroy(convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  const int padding[] = {pad_h, pad_w};
  const int stride[] = {stride_h, stride_w};
  const int dilation[] = {dilation_h, dilation_w};
  return SetConvolution(convolution, 2, padding, stride, dilation, mode, compute_type);
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convolution,
                                              int* pad_h, int* pad_w, int* stride_h, int* stride_w,
                                              int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute_type) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr && convolution->spatial_rank == 2,
                       CUDNN_STATUS_BAD_PARAM);
  Put(pad_h, convolution->padding[0]);
  Put(pad_w, convolution->padding[1]);
  Put(stride_h, convolution->stride[0]);
  Put(stride_w, convolution->stride[1]);
  Put(dilation_h, convolution->dilation[0]);
  Put(dilation_w, convolution->dilation[1]);
  Put(mode, convolution->mode);
  Put(compute_type, convolution->compute_type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int rank,
                                              const int padding[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  return SetConvolution(convolution, rank, padding, stride, dilation, mode, compute_type);
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convolution,
                                              int requested, int* rank, int padding[], int stride[],
                                              int dilation[], cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute_type) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const int count = std::clamp(requested, 0, convolution->spatial_rank);
  Put(rank, convolution->spatial_rank);
  Put(mode, convolution->mode);
  Put(compute_type, convolution->compute_type);
  if (padding != nullptr) std::copy_n(convolution->padding, count, padding);
  if (stride != nullptr) std::copy_n(convolution->stride, count, stride);
  if (dilation != nullptr) std::copy_n(convolution->dilation, count, dilation);
  return CUDNN_STATUS_SUCCESS;
}

#define SPILLWAY_DNN_CONVOLUTION_PROPERTY(Name, type, field, valid)                               \
  cudnnStatus_t cudnnSetConvolution##Name(cudnnConvolutionDescriptor_t convolution, type value) { \
    SPILLWAY_DNN_REQUIRE(convolution != nullptr && (valid), CUDNN_STATUS_BAD_PARAM);              \
    convolution->field = value;                                                                   \
    return CUDNN_STATUS_SUCCESS;                                                                  \
  }                                                                                               \
  cudnnStatus_t cudnnGetConvolution##Name(const cudnnConvolutionDescriptor_t convolution,         \
                                          type* value) {                                          \
    SPILLWAY_DNN_REQUIRE(convolution != nullptr && value != nullptr, CUDNN_STATUS_BAD_PARAM);     \
    *value = convolution->field;                                                                  \
    return CUDNN_STATUS_SUCCESS;                                                                  \
  }
SPILLWAY_DNN_CONVOLUTION_PROPERTY(GroupCount, int, groups, value >= 1)
SPILLWAY_DNN_CONVOLUTION_PROPERTY(MathType, cudnnMathType_t, math_type, value <= CUDNN_FMA_MATH)
SPILLWAY_DNN_CONVOLUTION_PROPERTY(ReorderType, cudnnReorderType_t, reorder,
                                  value <= CUDNN_NO_REORDER)
#undef SPILLWAY_DNN_CONVOLUTION_PROPERTY

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convolution,
                                                    const cudnnTensorDescriptor_t input,
                                                    const cudnnFilterDescriptor_t filter, int* n,
                                                    int* c, int* h, int* w) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr && convolution->spatial_rank == 2,
                       CUDNN_STATUS_BAD_PARAM);
  int dims[CUDNN_DIM_MAX];
  const cudnnStatus_t status = ConvolutionOutput(convolution, input, filter, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  Put(n, dims[0]);
  Put(c, dims[1]);
  Put(h, dims[2]);
  Put(w, dims[3]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convolution,
                                                    const cudnnTensorDescriptor_t input,
                                                    const cudnnFilterDescriptor_t filter, int rank,
                                                    int output[]) {
  SPILLWAY_DNN_REQUIRE(convolution != nullptr && output != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank == convolution->spatial_rank + 2, CUDNN_STATUS_BAD_PARAM);
  return ConvolutionOutput(convolution, input, filter, output);
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling) {
  return Create(pooling);
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling) {
  return Destroy(pooling);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_h, int window_w,
                                          int pad_h, int pad_w, int stride_h, int stride_w) {
  const int window[] = {window_h, window_w};
  const int padding[] = {pad_h, pad_w};
  const int stride[] = {stride_h, stride_w};
  return SetPooling(pooling, mode, nan, 2, window, padding, stride);
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t pooling,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* window_h, int* window_w, int* pad_h, int* pad_w,
                                          int* stride_h, int* stride_w) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr && pooling->spatial_rank == 2, CUDNN_STATUS_BAD_PARAM);
  Put(mode, pooling->mode);
  Put(nan, pooling->nan);
  Put(window_h, pooling->window[0]);
  Put(window_w, pooling->window[1]);
  Put(pad_h, pooling->padding[0]);
  Put(pad_w, pooling->padding[1]);
  Put(stride_h, pooling->stride[0]);
  Put(stride_w, pooling->stride[1]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int rank,
                                          const int window[], const int padding[],
                                          const int stride[]) {
  return SetPooling(pooling, mode, nan, rank, window, padding, stride);
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t pooling, int requested,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* rank, int window[], int padding[], int stride[]) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const int count = std::clamp(requested, 0, pooling->spatial_rank);
  Put(mode, pooling->mode);
  Put(nan, pooling->nan);
  Put(rank, pooling->spatial_rank);
  if (window != nullptr) std::copy_n(pooling->window, count, window);
  if (padding != nullptr) std::copy_n(pooling->padding, count, padding);
  if (stride != nullptr) std::copy_n(pooling->stride, count, stride);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                                const cudnnTensorDescriptor_t input, int* n, int* c,
                                                int* h, int* w) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr && pooling->spatial_rank == 2, CUDNN_STATUS_BAD_PARAM);
  int dims[CUDNN_DIM_MAX];
  const cudnnStatus_t status = PoolingOutput(pooling, input, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  Put(n, dims[0]);
  Put(c, dims[1]);
  Put(h, dims[2]);
  Put(w, dims[3]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                                const cudnnTensorDescriptor_t input, int rank,
                                                int output[]) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr && output != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(rank == pooling->spatial_rank + 2, CUDNN_STATUS_BAD_PARAM);
  return PoolingOutput(pooling, input, output);
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  const cudnnStatus_t status = Create(activation);
  if (status == CUDNN_STATUS_SUCCESS) (*activation)->swish_beta = 1.0;
  return status;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
  return Destroy(activation);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient) {
  SPILLWAY_DNN_REQUIRE(activation != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(mode >= CUDNN_ACTIVATION_SIGMOID && mode <= CUDNN_ACTIVATION_SWISH,
                       CUDNN_STATUS_BAD_PARAM);
  activation->mode = mode;
  activation->nan = nan;
  activation->coefficient = coefficient;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t* mode, cudnnNanPropagation_t* nan,
                                           double* coefficient) {
  SPILLWAY_DNN_REQUIRE(activation != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Put(mode, activation->mode);
  Put(nan, activation->nan);
  Put(coefficient, activation->coefficient);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double swish_beta) {
  SPILLWAY_DNN_REQUIRE(activation != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  activation->swish_beta = swish_beta;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double* swish_beta) {
  SPILLWAY_DNN_REQUIRE(activation != nullptr && swish_beta != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *swish_beta = activation->swish_beta;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* lrn) {
  const cudnnStatus_t status = Create(lrn);
  if (status == CUDNN_STATUS_SUCCESS) **lrn = {5, 1e-4, 0.75, 2.0};  // the documented defaults
  return status;
}
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrn) { return Destroy(lrn); }

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned n, double alpha, double beta,
                                    double k) {
  SPILLWAY_DNN_REQUIRE(lrn != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(n >= CUDNN_LRN_MIN_N && n <= CUDNN_LRN_MAX_N, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(k >= CUDNN_LRN_MIN_K && beta >= CUDNN_LRN_MIN_BETA, CUDNN_STATUS_BAD_PARAM);
  *lrn = {n, alpha, beta, k};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned* n, double* alpha,
                                    double* beta, double* k) {
  SPILLWAY_DNN_REQUIRE(lrn != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Put(n, lrn->n);
  Put(alpha, lrn->alpha);
  Put(beta, lrn->beta);
  Put(k, lrn->k);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* op) { return Create(op); }
cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t op) { return Destroy(op); }

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t op, cudnnOpTensorOp_t what,
                                         cudnnDataType_t compute_type, cudnnNanPropagation_t nan) {
  SPILLWAY_DNN_REQUIRE(op != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *op = {what, compute_type, nan};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t op,
                                         cudnnOpTensorOp_t* what, cudnnDataType_t* compute_type,
                                         cudnnNanPropagation_t* nan) {
  SPILLWAY_DNN_REQUIRE(op != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Put(what, op->op);
  Put(compute_type, op->compute_type);
  Put(nan, op->nan);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduce) {
  return Create(reduce);
}
cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduce) {
  return Destroy(reduce);
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduce,
                                             cudnnReduceTensorOp_t what,
                                             cudnnDataType_t compute_type,
                                             cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices,
                                             cudnnIndicesType_t indices_type) {
  SPILLWAY_DNN_REQUIRE(reduce != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *reduce = {what, compute_type, nan, indices, indices_type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t reduce,
                                             cudnnReduceTensorOp_t* what,
                                             cudnnDataType_t* compute_type,
                                             cudnnNanPropagation_t* nan,
                                             cudnnReduceTensorIndices_t* indices,
                                             cudnnIndicesType_t* indices_type) {
  SPILLWAY_DNN_REQUIRE(reduce != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Put(what, reduce->op);
  Put(compute_type, reduce->compute_type);
  Put(nan, reduce->nan);
  Put(indices, reduce->indices);
  Put(indices_type, reduce->indices_type);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
