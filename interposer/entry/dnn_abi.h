// The functions of cuDNN and cuBLAS that are hooked, or called by the hooks, as exported.
//
// Written from the public headers cudnn_ops.h, cudnn_cnn.h (identical in cuDNN 7 to 9),
// cudnn_graph.h (8 and 9) and cublas_api.h (cuBLAS 10 to 13). Handles and descriptors are pointers;
// enumerations and statuses are int (x86-64 and AArch64 ABIs).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/dnn/tensor_extent.h"
#include "interposer/entry/export.h"

namespace spillway::dnn {

using Handle = void*;
using Descriptor = const void*;
using Status = int;
inline constexpr Status kNotInitialized =
    1;  // CUDNN_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED

// cudnnTensorFormat_t
inline constexpr int kNchw = 0, kNhwc = 1;

using GetTensorNd = Status(Descriptor tensor, int wanted, int* type, int* count, int* sizes,
                           int* strides);
using GetFilterNd = Status(Descriptor filter, int wanted, int* type, int* format, int* count,
                           int* sizes);

// cublasOperation_t
inline constexpr int kAsIs = 0;
// cublasPointerMode_t
inline constexpr int kScalarsOnHost = 0;
// cudaDataType_t
inline constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kReal8i = 3, kReal8u = 8, kReal32i = 10,
                     kRealBf16 = 14;
// cublasComputeType_t, from 16F to 64F_EMULATED. It determines the type of the scalars.
inline constexpr int kComputeHalf = 64, kComputeHalfPedantic = 65;
inline constexpr int kComputeDouble = 70, kComputeDoublePedantic = 71, kComputeDoubleEmulated = 79;
inline constexpr int kComputeInt = 72, kComputeIntPedantic = 73;
inline constexpr int kComputeFloat = 68, kComputeFloatPedantic = 69, kComputeFloatFast16 = 74,
                     kComputeFloatFastBf16 = 75, kComputeFloatFastTf32 = 77,
                     kComputeFloatEmulated = 78;

using GetPointerMode = Status(Handle handle, int* mode);

}  // namespace spillway::dnn

#define SPILLWAY_DNN_FUNCTION SPILLWAY_EXPORT ::spillway::dnn::Status

SPILLWAY_DNN_FUNCTION cudnnActivationForward(::spillway::dnn::Handle handle,
                                             ::spillway::dnn::Descriptor activation,
                                             const void* alpha, ::spillway::dnn::Descriptor x_is,
                                             const void* x, const void* beta,
                                             ::spillway::dnn::Descriptor y_is, void* y);
SPILLWAY_DNN_FUNCTION cudnnActivationBackward(::spillway::dnn::Handle handle,
                                              ::spillway::dnn::Descriptor activation,
                                              const void* alpha, ::spillway::dnn::Descriptor y_is,
                                              const void* y, ::spillway::dnn::Descriptor dy_is,
                                              const void* dy, ::spillway::dnn::Descriptor x_is,
                                              const void* x, const void* beta,
                                              ::spillway::dnn::Descriptor dx_is, void* dx);
SPILLWAY_DNN_FUNCTION cudnnAddTensor(::spillway::dnn::Handle handle, const void* alpha,
                                     ::spillway::dnn::Descriptor a_is, const void* a,
                                     const void* beta, ::spillway::dnn::Descriptor c_is, void* c);
SPILLWAY_DNN_FUNCTION cudnnBackendCreateDescriptor(int kind,
                                                   ::spillway::dnn::Descriptor* descriptor);
SPILLWAY_DNN_FUNCTION cudnnBackendDestroyDescriptor(::spillway::dnn::Descriptor descriptor);
SPILLWAY_DNN_FUNCTION cudnnBackendFinalize(::spillway::dnn::Descriptor descriptor);
SPILLWAY_DNN_FUNCTION cudnnBackendSetAttribute(::spillway::dnn::Descriptor descriptor, int name,
                                               int type, int64_t count, const void* elements);
SPILLWAY_DNN_FUNCTION cudnnBackendGetAttribute(::spillway::dnn::Descriptor descriptor, int name,
                                               int type, int64_t requested, int64_t* count,
                                               void* elements);
SPILLWAY_DNN_FUNCTION cudnnBackendExecute(::spillway::dnn::Handle handle,
                                          ::spillway::dnn::Descriptor plan,
                                          ::spillway::dnn::Descriptor variant_pack);
SPILLWAY_DNN_FUNCTION cudnnBatchNormalizationForwardTraining(
    ::spillway::dnn::Handle handle, int mode, const void* alpha, const void* beta,
    ::spillway::dnn::Descriptor x_is, const void* x, ::spillway::dnn::Descriptor y_is, void* y,
    ::spillway::dnn::Descriptor scale_is, const void* scale, const void* bias, double factor,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_deviation);
SPILLWAY_DNN_FUNCTION cudnnBatchNormalizationForwardTrainingEx(
    ::spillway::dnn::Handle handle, int mode, int operations, const void* alpha, const void* beta,
    ::spillway::dnn::Descriptor x_is, const void* x, ::spillway::dnn::Descriptor z_is,
    const void* z, ::spillway::dnn::Descriptor y_is, void* y, ::spillway::dnn::Descriptor scale_is,
    const void* scale, const void* bias, double factor, void* running_mean, void* running_variance,
    double epsilon, void* saved_mean, void* saved_deviation, ::spillway::dnn::Descriptor activation,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes);
SPILLWAY_DNN_FUNCTION cudnnBatchNormalizationForwardInference(
    ::spillway::dnn::Handle handle, int mode, const void* alpha, const void* beta,
    ::spillway::dnn::Descriptor x_is, const void* x, ::spillway::dnn::Descriptor y_is, void* y,
    ::spillway::dnn::Descriptor scale_is, const void* scale, const void* bias, const void* mean,
    const void* variance, double epsilon);
SPILLWAY_DNN_FUNCTION cudnnBatchNormalizationBackward(
    ::spillway::dnn::Handle handle, int mode, const void* alpha, const void* beta,
    const void* parameter_alpha, const void* parameter_beta, ::spillway::dnn::Descriptor x_is,
    const void* x, ::spillway::dnn::Descriptor dy_is, const void* dy,
    ::spillway::dnn::Descriptor dx_is, void* dx, ::spillway::dnn::Descriptor scale_is,
    const void* scale, void* d_scale, void* d_bias, double epsilon, const void* saved_mean,
    const void* saved_deviation);
SPILLWAY_DNN_FUNCTION cudnnBatchNormalizationBackwardEx(
    ::spillway::dnn::Handle handle, int mode, int operations, const void* alpha, const void* beta,
    const void* parameter_alpha, const void* parameter_beta, ::spillway::dnn::Descriptor x_is,
    const void* x, ::spillway::dnn::Descriptor y_is, const void* y,
    ::spillway::dnn::Descriptor dy_is, const void* dy, ::spillway::dnn::Descriptor dz_is, void* dz,
    ::spillway::dnn::Descriptor dx_is, void* dx, ::spillway::dnn::Descriptor scale_is,
    const void* scale, const void* bias, void* d_scale, void* d_bias, double epsilon,
    const void* saved_mean, const void* saved_deviation, ::spillway::dnn::Descriptor activation,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes);
SPILLWAY_DNN_FUNCTION cudnnConvolutionForward(::spillway::dnn::Handle handle, const void* alpha,
                                              ::spillway::dnn::Descriptor x_is, const void* x,
                                              ::spillway::dnn::Descriptor w_is, const void* w,
                                              ::spillway::dnn::Descriptor convolution,
                                              int algorithm, void* workspace,
                                              size_t workspace_bytes, const void* beta,
                                              ::spillway::dnn::Descriptor y_is, void* y);
SPILLWAY_DNN_FUNCTION cudnnConvolutionBackwardData(
    ::spillway::dnn::Handle handle, const void* alpha, ::spillway::dnn::Descriptor w_is,
    const void* w, ::spillway::dnn::Descriptor dy_is, const void* dy,
    ::spillway::dnn::Descriptor convolution, int algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, ::spillway::dnn::Descriptor dx_is, void* dx);
SPILLWAY_DNN_FUNCTION cudnnConvolutionBackwardFilter(
    ::spillway::dnn::Handle handle, const void* alpha, ::spillway::dnn::Descriptor x_is,
    const void* x, ::spillway::dnn::Descriptor dy_is, const void* dy,
    ::spillway::dnn::Descriptor convolution, int algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, ::spillway::dnn::Descriptor dw_is, void* dw);
SPILLWAY_DNN_FUNCTION cudnnConvolutionBackwardBias(::spillway::dnn::Handle handle,
                                                   const void* alpha,
                                                   ::spillway::dnn::Descriptor dy_is,
                                                   const void* dy, const void* beta,
                                                   ::spillway::dnn::Descriptor db_is, void* db);
SPILLWAY_DNN_FUNCTION cudnnConvolutionBiasActivationForward(
    ::spillway::dnn::Handle handle, const void* alpha, ::spillway::dnn::Descriptor x_is,
    const void* x, ::spillway::dnn::Descriptor w_is, const void* w,
    ::spillway::dnn::Descriptor convolution, int algorithm, void* workspace, size_t workspace_bytes,
    const void* z_alpha, ::spillway::dnn::Descriptor z_is, const void* z,
    ::spillway::dnn::Descriptor bias_is, const void* bias, ::spillway::dnn::Descriptor activation,
    ::spillway::dnn::Descriptor y_is, void* y);
SPILLWAY_DNN_FUNCTION cudnnDropoutForward(::spillway::dnn::Handle handle,
                                          ::spillway::dnn::Descriptor dropout,
                                          ::spillway::dnn::Descriptor x_is, const void* x,
                                          ::spillway::dnn::Descriptor y_is, void* y, void* reserve,
                                          size_t reserve_bytes);
SPILLWAY_DNN_FUNCTION cudnnDropoutBackward(::spillway::dnn::Handle handle,
                                           ::spillway::dnn::Descriptor dropout,
                                           ::spillway::dnn::Descriptor dy_is, const void* dy,
                                           ::spillway::dnn::Descriptor dx_is, void* dx,
                                           void* reserve, size_t reserve_bytes);
SPILLWAY_DNN_FUNCTION cudnnLRNCrossChannelForward(::spillway::dnn::Handle handle,
                                                  ::spillway::dnn::Descriptor normalization,
                                                  int mode, const void* alpha,
                                                  ::spillway::dnn::Descriptor x_is, const void* x,
                                                  const void* beta,
                                                  ::spillway::dnn::Descriptor y_is, void* y);
SPILLWAY_DNN_FUNCTION cudnnLRNCrossChannelBackward(
    ::spillway::dnn::Handle handle, ::spillway::dnn::Descriptor normalization, int mode,
    const void* alpha, ::spillway::dnn::Descriptor y_is, const void* y,
    ::spillway::dnn::Descriptor dy_is, const void* dy, ::spillway::dnn::Descriptor x_is,
    const void* x, const void* beta, ::spillway::dnn::Descriptor dx_is, void* dx);
SPILLWAY_DNN_FUNCTION cudnnOpTensor(::spillway::dnn::Handle handle,
                                    ::spillway::dnn::Descriptor operation, const void* a_alpha,
                                    ::spillway::dnn::Descriptor a_is, const void* a,
                                    const void* b_alpha, ::spillway::dnn::Descriptor b_is,
                                    const void* b, const void* beta,
                                    ::spillway::dnn::Descriptor c_is, void* c);
SPILLWAY_DNN_FUNCTION cudnnPoolingForward(::spillway::dnn::Handle handle,
                                          ::spillway::dnn::Descriptor pooling, const void* alpha,
                                          ::spillway::dnn::Descriptor x_is, const void* x,
                                          const void* beta, ::spillway::dnn::Descriptor y_is,
                                          void* y);
SPILLWAY_DNN_FUNCTION cudnnPoolingBackward(::spillway::dnn::Handle handle,
                                           ::spillway::dnn::Descriptor pooling, const void* alpha,
                                           ::spillway::dnn::Descriptor y_is, const void* y,
                                           ::spillway::dnn::Descriptor dy_is, const void* dy,
                                           ::spillway::dnn::Descriptor x_is, const void* x,
                                           const void* beta, ::spillway::dnn::Descriptor dx_is,
                                           void* dx);
SPILLWAY_DNN_FUNCTION cudnnReduceTensor(::spillway::dnn::Handle handle,
                                        ::spillway::dnn::Descriptor reduction, void* indices,
                                        size_t indices_bytes, void* workspace,
                                        size_t workspace_bytes, const void* alpha,
                                        ::spillway::dnn::Descriptor a_is, const void* a,
                                        const void* beta, ::spillway::dnn::Descriptor c_is,
                                        void* c);
SPILLWAY_DNN_FUNCTION cudnnSetTensor(::spillway::dnn::Handle handle,
                                     ::spillway::dnn::Descriptor y_is, void* y, const void* value);
SPILLWAY_DNN_FUNCTION cudnnSoftmaxForward(::spillway::dnn::Handle handle, int algorithm, int mode,
                                          const void* alpha, ::spillway::dnn::Descriptor x_is,
                                          const void* x, const void* beta,
                                          ::spillway::dnn::Descriptor y_is, void* y);
SPILLWAY_DNN_FUNCTION cudnnSoftmaxBackward(::spillway::dnn::Handle handle, int algorithm, int mode,
                                           const void* alpha, ::spillway::dnn::Descriptor y_is,
                                           const void* y, ::spillway::dnn::Descriptor dy_is,
                                           const void* dy, const void* beta,
                                           ::spillway::dnn::Descriptor dx_is, void* dx);
SPILLWAY_DNN_FUNCTION cudnnTransformTensor(::spillway::dnn::Handle handle, const void* alpha,
                                           ::spillway::dnn::Descriptor x_is, const void* x,
                                           const void* beta, ::spillway::dnn::Descriptor y_is,
                                           void* y);
SPILLWAY_DNN_FUNCTION cublasSgemm_v2(::spillway::dnn::Handle handle, int a_turned, int b_turned,
                                     int m, int n, int k, const float* alpha, const float* a,
                                     int lda, const float* b, int ldb, const float* beta, float* c,
                                     int ldc);
SPILLWAY_DNN_FUNCTION cublasDgemm_v2(::spillway::dnn::Handle handle, int a_turned, int b_turned,
                                     int m, int n, int k, const double* alpha, const double* a,
                                     int lda, const double* b, int ldb, const double* beta,
                                     double* c, int ldc);
SPILLWAY_DNN_FUNCTION cublasHgemm(::spillway::dnn::Handle handle, int a_turned, int b_turned, int m,
                                  int n, int k, const void* alpha, const void* a, int lda,
                                  const void* b, int ldb, const void* beta, void* c, int ldc);
SPILLWAY_DNN_FUNCTION cublasSgemmEx(::spillway::dnn::Handle handle, int a_turned, int b_turned,
                                    int m, int n, int k, const float* alpha, const void* a,
                                    int a_type, int lda, const void* b, int b_type, int ldb,
                                    const float* beta, void* c, int c_type, int ldc);
SPILLWAY_DNN_FUNCTION cublasGemmEx(::spillway::dnn::Handle handle, int a_turned, int b_turned,
                                   int m, int n, int k, const void* alpha, const void* a,
                                   int a_type, int lda, const void* b, int b_type, int ldb,
                                   const void* beta, void* c, int c_type, int ldc, int compute,
                                   int algorithm);
SPILLWAY_DNN_FUNCTION cublasSgemmStridedBatched(::spillway::dnn::Handle handle, int a_turned,
                                                int b_turned, int m, int n, int k,
                                                const float* alpha, const float* a, int lda,
                                                long long a_stride, const float* b, int ldb,
                                                long long b_stride, const float* beta, float* c,
                                                int ldc, long long c_stride, int count);
SPILLWAY_DNN_FUNCTION cublasDgemmStridedBatched(::spillway::dnn::Handle handle, int a_turned,
                                                int b_turned, int m, int n, int k,
                                                const double* alpha, const double* a, int lda,
                                                long long a_stride, const double* b, int ldb,
                                                long long b_stride, const double* beta, double* c,
                                                int ldc, long long c_stride, int count);
SPILLWAY_DNN_FUNCTION cublasHgemmStridedBatched(::spillway::dnn::Handle handle, int a_turned,
                                                int b_turned, int m, int n, int k,
                                                const void* alpha, const void* a, int lda,
                                                long long a_stride, const void* b, int ldb,
                                                long long b_stride, const void* beta, void* c,
                                                int ldc, long long c_stride, int count);
SPILLWAY_DNN_FUNCTION cublasGemmStridedBatchedEx(
    ::spillway::dnn::Handle handle, int a_turned, int b_turned, int m, int n, int k,
    const void* alpha, const void* a, int a_type, int lda, long long a_stride, const void* b,
    int b_type, int ldb, long long b_stride, const void* beta, void* c, int c_type, int ldc,
    long long c_stride, int count, int compute, int algorithm);
SPILLWAY_DNN_FUNCTION cublasSgemv_v2(::spillway::dnn::Handle handle, int a_turned, int m, int n,
                                     const float* alpha, const float* a, int lda, const float* x,
                                     int x_step, const float* beta, float* y, int y_step);
SPILLWAY_DNN_FUNCTION cublasDgemv_v2(::spillway::dnn::Handle handle, int a_turned, int m, int n,
                                     const double* alpha, const double* a, int lda, const double* x,
                                     int x_step, const double* beta, double* y, int y_step);
