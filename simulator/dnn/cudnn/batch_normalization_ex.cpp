#include "simulator/dnn/cudnn/descriptors.h"

using namespace spillway::simulator::dnn;

namespace {

cudnnStatus_t PlainSize(cudnnBatchNormOps_t ops, size_t* size) {
  SPILLWAY_DNN_REQUIRE(size != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(ops == CUDNN_BATCHNORM_OPS_BN, CUDNN_STATUS_NOT_SUPPORTED);
  *size = 0;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* size) {
  return PlainSize(ops, size);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t,
    size_t* size) {
  return PlainSize(ops, size);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t ops, const cudnnActivationDescriptor_t,
    const cudnnTensorDescriptor_t, size_t* size) {
  return PlainSize(ops, size);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t y_desc, void* y,
    const cudnnTensorDescriptor_t parameter_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse, cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  SPILLWAY_DNN_REQUIRE(ops == CUDNN_BATCHNORM_OPS_BN, CUDNN_STATUS_NOT_SUPPORTED);
  return cudnnBatchNormalizationForwardTraining(
      handle, mode, alpha, beta, x_desc, x, y_desc, y, parameter_desc, scale, bias, factor,
      running_mean, running_variance, epsilon, saved_mean, saved_inverse);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void* alpha_data, const void* beta_data, const void* alpha_parameter,
    const void* beta_parameter, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t dy_desc,
    const void* dy, const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t dx_desc,
    void* dx, const cudnnTensorDescriptor_t parameter_desc, const void* scale, const void*,
    void* dscale, void* dbias, double epsilon, const void* saved_mean, const void* saved_inverse,
    cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  SPILLWAY_DNN_REQUIRE(ops == CUDNN_BATCHNORM_OPS_BN, CUDNN_STATUS_NOT_SUPPORTED);
  return cudnnBatchNormalizationBackward(
      handle, mode, alpha_data, beta_data, alpha_parameter, beta_parameter, x_desc, x, dy_desc, dy,
      dx_desc, dx, parameter_desc, scale, dscale, dbias, epsilon, saved_mean, saved_inverse);
}

}  // extern "C"
