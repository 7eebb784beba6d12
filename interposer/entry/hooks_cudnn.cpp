// Inputs are the `const` parameters. Outputs with scaling factors: "When beta is zero, the output
// is not read and may contain uninitialized data" (cuDNN developer guide, Scaling Parameters).
// Then, and for functions without beta, each element gets a value. Reserve space is undocumented:
// no claim. Only the forward convolution's workspace is claimed as meaningless before and after the
// call ("workspace needed to be able to execute"). Forward functions without random state are
// repeatable (all forward convolutions are deterministic, cudnnConvolutionFwdAlgo_t). That is
// verified, too (execute/state/recompute_record.h). Batch norm statistics are outputs: "Optionally
// save intermediate results from the forward pass".
#include "interposer/entry/dnn_call.h"

using spillway::dnn::Descriptor;
using spillway::dnn::Handle;

SPILLWAY_DNN_HOOK(cudnnConvolutionForward,
                  (Handle handle, const void* alpha, Descriptor x_is, const void* x,
                   Descriptor w_is, const void* w, Descriptor convolution, int algorithm,
                   void* workspace, size_t workspace_bytes, const void* beta, Descriptor y_is,
                   void* y),
                  (handle, alpha, x_is, x, w_is, w, convolution, algorithm, workspace,
                   workspace_bytes, beta, y_is, y),
                  call.Reads(x, x_is);
                  call.ReadsFilter(w, w_is); call.UsesWorkspace(workspace, workspace_bytes);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnConvolutionBackwardData,
                  (Handle handle, const void* alpha, Descriptor w_is, const void* w,
                   Descriptor dy_is, const void* dy, Descriptor convolution, int algorithm,
                   void* workspace, size_t workspace_bytes, const void* beta, Descriptor dx_is,
                   void* dx),
                  (handle, alpha, w_is, w, dy_is, dy, convolution, algorithm, workspace,
                   workspace_bytes, beta, dx_is, dx),
                  call.ReadsFilter(w, w_is);
                  call.Reads(dy, dy_is); call.Touches(workspace); call.Writes(dx, dx_is, beta))

SPILLWAY_DNN_HOOK(cudnnConvolutionBackwardFilter,
                  (Handle handle, const void* alpha, Descriptor x_is, const void* x,
                   Descriptor dy_is, const void* dy, Descriptor convolution, int algorithm,
                   void* workspace, size_t workspace_bytes, const void* beta, Descriptor dw_is,
                   void* dw),
                  (handle, alpha, x_is, x, dy_is, dy, convolution, algorithm, workspace,
                   workspace_bytes, beta, dw_is, dw),
                  call.Reads(x, x_is);
                  call.Reads(dy, dy_is); call.Touches(workspace);
                  call.WritesFilter(dw, dw_is, beta))

SPILLWAY_DNN_HOOK(cudnnConvolutionBackwardBias,
                  (Handle handle, const void* alpha, Descriptor dy_is, const void* dy,
                   const void* beta, Descriptor db_is, void* db),
                  (handle, alpha, dy_is, dy, beta, db_is, db), call.Reads(dy, dy_is);
                  call.Writes(db, db_is, beta))

// z may be y.
SPILLWAY_DNN_HOOK(cudnnConvolutionBiasActivationForward,
                  (Handle handle, const void* alpha, Descriptor x_is, const void* x,
                   Descriptor w_is, const void* w, Descriptor convolution, int algorithm,
                   void* workspace, size_t workspace_bytes, const void* z_alpha, Descriptor z_is,
                   const void* z, Descriptor bias_is, const void* bias, Descriptor activation,
                   Descriptor y_is, void* y),
                  (handle, alpha, x_is, x, w_is, w, convolution, algorithm, workspace,
                   workspace_bytes, z_alpha, z_is, z, bias_is, bias, activation, y_is, y),
                  call.Reads(x, x_is);
                  call.ReadsFilter(w, w_is); call.Reads(z, z_is); call.Reads(bias, bias_is);
                  call.UsesWorkspace(workspace, workspace_bytes); call.Overwrites(y, y_is);
                  call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnBatchNormalizationForwardTraining,
                  (Handle handle, int mode, const void* alpha, const void* beta, Descriptor x_is,
                   const void* x, Descriptor y_is, void* y, Descriptor scale_is, const void* scale,
                   const void* bias, double factor, void* running_mean, void* running_variance,
                   double epsilon, void* saved_mean, void* saved_deviation),
                  (handle, mode, alpha, beta, x_is, x, y_is, y, scale_is, scale, bias, factor,
                   running_mean, running_variance, epsilon, saved_mean, saved_deviation),
                  call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.Reads(scale, scale_is);
                  call.Reads(bias, scale_is); call.Clobbers(running_mean, scale_is);
                  call.Clobbers(running_variance, scale_is); call.Clobbers(saved_mean, scale_is);
                  call.Clobbers(saved_deviation, scale_is); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnBatchNormalizationForwardTrainingEx,
                  (Handle handle, int mode, int operations, const void* alpha, const void* beta,
                   Descriptor x_is, const void* x, Descriptor z_is, const void* z, Descriptor y_is,
                   void* y, Descriptor scale_is, const void* scale, const void* bias, double factor,
                   void* running_mean, void* running_variance, double epsilon, void* saved_mean,
                   void* saved_deviation, Descriptor activation, void* workspace,
                   size_t workspace_bytes, void* reserve, size_t reserve_bytes),
                  (handle, mode, operations, alpha, beta, x_is, x, z_is, z, y_is, y, scale_is,
                   scale, bias, factor, running_mean, running_variance, epsilon, saved_mean,
                   saved_deviation, activation, workspace, workspace_bytes, reserve, reserve_bytes),
                  call.Reads(x, x_is);
                  call.Reads(z, z_is); call.Writes(y, y_is, beta); call.Reads(scale, scale_is);
                  call.Reads(bias, scale_is); call.Clobbers(running_mean, scale_is);
                  call.Clobbers(running_variance, scale_is); call.Clobbers(saved_mean, scale_is);
                  call.Clobbers(saved_deviation, scale_is); call.Touches(workspace);
                  call.Touches(reserve); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnBatchNormalizationForwardInference,
                  (Handle handle, int mode, const void* alpha, const void* beta, Descriptor x_is,
                   const void* x, Descriptor y_is, void* y, Descriptor scale_is, const void* scale,
                   const void* bias, const void* mean, const void* variance, double epsilon),
                  (handle, mode, alpha, beta, x_is, x, y_is, y, scale_is, scale, bias, mean,
                   variance, epsilon),
                  call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.Reads(scale, scale_is);
                  call.Reads(bias, scale_is); call.Reads(mean, scale_is);
                  call.Reads(variance, scale_is); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(
    cudnnBatchNormalizationBackward,
    (Handle handle, int mode, const void* alpha, const void* beta, const void* parameter_alpha,
     const void* parameter_beta, Descriptor x_is, const void* x, Descriptor dy_is, const void* dy,
     Descriptor dx_is, void* dx, Descriptor scale_is, const void* scale, void* d_scale,
     void* d_bias, double epsilon, const void* saved_mean, const void* saved_deviation),
    (handle, mode, alpha, beta, parameter_alpha, parameter_beta, x_is, x, dy_is, dy, dx_is, dx,
     scale_is, scale, d_scale, d_bias, epsilon, saved_mean, saved_deviation),
    call.Reads(x, x_is);
    call.Reads(dy, dy_is); call.Writes(dx, dx_is, beta); call.Reads(scale, scale_is);
    call.Writes(d_scale, scale_is, parameter_beta); call.Writes(d_bias, scale_is, parameter_beta);
    call.Reads(saved_mean, scale_is); call.Reads(saved_deviation, scale_is))

SPILLWAY_DNN_HOOK(cudnnBatchNormalizationBackwardEx,
                  (Handle handle, int mode, int operations, const void* alpha, const void* beta,
                   const void* parameter_alpha, const void* parameter_beta, Descriptor x_is,
                   const void* x, Descriptor y_is, const void* y, Descriptor dy_is, const void* dy,
                   Descriptor dz_is, void* dz, Descriptor dx_is, void* dx, Descriptor scale_is,
                   const void* scale, const void* bias, void* d_scale, void* d_bias, double epsilon,
                   const void* saved_mean, const void* saved_deviation, Descriptor activation,
                   void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes),
                  (handle, mode, operations, alpha, beta, parameter_alpha, parameter_beta, x_is, x,
                   y_is, y, dy_is, dy, dz_is, dz, dx_is, dx, scale_is, scale, bias, d_scale, d_bias,
                   epsilon, saved_mean, saved_deviation, activation, workspace, workspace_bytes,
                   reserve, reserve_bytes),
                  call.Reads(x, x_is);
                  call.Reads(y, y_is); call.Reads(dy, dy_is); call.Writes(dx, dx_is, beta);
                  call.Reads(scale, scale_is); call.Reads(bias, scale_is);
                  call.Writes(d_scale, scale_is, parameter_beta);
                  call.Writes(d_bias, scale_is, parameter_beta); call.Reads(saved_mean, scale_is);
                  call.Reads(saved_deviation, scale_is); call.Touches(dz); call.Touches(workspace);
                  call.Touches(reserve))

SPILLWAY_DNN_HOOK(cudnnLRNCrossChannelForward,
                  (Handle handle, Descriptor normalization, int mode, const void* alpha,
                   Descriptor x_is, const void* x, const void* beta, Descriptor y_is, void* y),
                  (handle, normalization, mode, alpha, x_is, x, beta, y_is, y), call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnLRNCrossChannelBackward,
                  (Handle handle, Descriptor normalization, int mode, const void* alpha,
                   Descriptor y_is, const void* y, Descriptor dy_is, const void* dy,
                   Descriptor x_is, const void* x, const void* beta, Descriptor dx_is, void* dx),
                  (handle, normalization, mode, alpha, y_is, y, dy_is, dy, x_is, x, beta, dx_is,
                   dx),
                  call.Reads(y, y_is);
                  call.Reads(dy, dy_is); call.Reads(x, x_is); call.Writes(dx, dx_is, beta))

SPILLWAY_DNN_HOOK(cudnnActivationForward,
                  (Handle handle, Descriptor activation, const void* alpha, Descriptor x_is,
                   const void* x, const void* beta, Descriptor y_is, void* y),
                  (handle, activation, alpha, x_is, x, beta, y_is, y), call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnActivationBackward,
                  (Handle handle, Descriptor activation, const void* alpha, Descriptor y_is,
                   const void* y, Descriptor dy_is, const void* dy, Descriptor x_is, const void* x,
                   const void* beta, Descriptor dx_is, void* dx),
                  (handle, activation, alpha, y_is, y, dy_is, dy, x_is, x, beta, dx_is, dx),
                  call.Reads(y, y_is);
                  call.Reads(dy, dy_is); call.Reads(x, x_is); call.Writes(dx, dx_is, beta))

SPILLWAY_DNN_HOOK(cudnnPoolingForward,
                  (Handle handle, Descriptor pooling, const void* alpha, Descriptor x_is,
                   const void* x, const void* beta, Descriptor y_is, void* y),
                  (handle, pooling, alpha, x_is, x, beta, y_is, y), call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnPoolingBackward,
                  (Handle handle, Descriptor pooling, const void* alpha, Descriptor y_is,
                   const void* y, Descriptor dy_is, const void* dy, Descriptor x_is, const void* x,
                   const void* beta, Descriptor dx_is, void* dx),
                  (handle, pooling, alpha, y_is, y, dy_is, dy, x_is, x, beta, dx_is, dx),
                  call.Reads(y, y_is);
                  call.Reads(dy, dy_is); call.Reads(x, x_is); call.Writes(dx, dx_is, beta))

SPILLWAY_DNN_HOOK(cudnnSoftmaxForward,
                  (Handle handle, int algorithm, int mode, const void* alpha, Descriptor x_is,
                   const void* x, const void* beta, Descriptor y_is, void* y),
                  (handle, algorithm, mode, alpha, x_is, x, beta, y_is, y), call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnSoftmaxBackward,
                  (Handle handle, int algorithm, int mode, const void* alpha, Descriptor y_is,
                   const void* y, Descriptor dy_is, const void* dy, const void* beta,
                   Descriptor dx_is, void* dx),
                  (handle, algorithm, mode, alpha, y_is, y, dy_is, dy, beta, dx_is, dx),
                  call.Reads(y, y_is);
                  call.Reads(dy, dy_is); call.Writes(dx, dx_is, beta))

SPILLWAY_DNN_HOOK(cudnnDropoutForward,
                  (Handle handle, Descriptor dropout, Descriptor x_is, const void* x,
                   Descriptor y_is, void* y, void* reserve, size_t reserve_bytes),
                  (handle, dropout, x_is, x, y_is, y, reserve, reserve_bytes), call.Reads(x, x_is);
                  call.Overwrites(y, y_is); call.Touches(reserve))

SPILLWAY_DNN_HOOK(cudnnDropoutBackward,
                  (Handle handle, Descriptor dropout, Descriptor dy_is, const void* dy,
                   Descriptor dx_is, void* dx, void* reserve, size_t reserve_bytes),
                  (handle, dropout, dy_is, dy, dx_is, dx, reserve, reserve_bytes),
                  call.Reads(dy, dy_is);
                  call.Overwrites(dx, dx_is); call.Touches(reserve))

SPILLWAY_DNN_HOOK(cudnnAddTensor,
                  (Handle handle, const void* alpha, Descriptor a_is, const void* a,
                   const void* beta, Descriptor c_is, void* c),
                  (handle, alpha, a_is, a, beta, c_is, c), call.Reads(a, a_is);
                  call.Writes(c, c_is, beta))

SPILLWAY_DNN_HOOK(cudnnOpTensor,
                  (Handle handle, Descriptor operation, const void* a_alpha, Descriptor a_is,
                   const void* a, const void* b_alpha, Descriptor b_is, const void* b,
                   const void* beta, Descriptor c_is, void* c),
                  (handle, operation, a_alpha, a_is, a, b_alpha, b_is, b, beta, c_is, c),
                  call.Reads(a, a_is);
                  call.Reads(b, b_is); call.Writes(c, c_is, beta); call.MarkRepeatable())

SPILLWAY_DNN_HOOK(cudnnReduceTensor,
                  (Handle handle, Descriptor reduction, void* indices, size_t indices_bytes,
                   void* workspace, size_t workspace_bytes, const void* alpha, Descriptor a_is,
                   const void* a, const void* beta, Descriptor c_is, void* c),
                  (handle, reduction, indices, indices_bytes, workspace, workspace_bytes, alpha,
                   a_is, a, beta, c_is, c),
                  call.Reads(a, a_is);
                  call.Writes(c, c_is, beta); call.Touches(indices); call.Touches(workspace))

SPILLWAY_DNN_HOOK(cudnnSetTensor, (Handle handle, Descriptor y_is, void* y, const void* value),
                  (handle, y_is, y, value), call.Overwrites(y, y_is))

SPILLWAY_DNN_HOOK(cudnnTransformTensor,
                  (Handle handle, const void* alpha, Descriptor x_is, const void* x,
                   const void* beta, Descriptor y_is, void* y),
                  (handle, alpha, x_is, x, beta, y_is, y), call.Reads(x, x_is);
                  call.Writes(y, y_is, beta); call.MarkRepeatable())
