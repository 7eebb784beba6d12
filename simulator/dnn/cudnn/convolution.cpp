#include <algorithm>

#include "simulator/dnn/common/reduction.h"
#include "simulator/dnn/common/workspace.h"
#include "simulator/dnn/cudnn/activation.h"
#include "simulator/dnn/cudnn/convolution_call.h"
#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

struct ConvolutionArguments {
  ConvolutionShape shape;
  TensorView x;
  TensorView w;
  TensorView y;
  float alpha;
  float beta;
  std::int32_t turned;  // CUDNN_CONVOLUTION rather than CUDNN_CROSS_CORRELATION
  std::uint64_t workspace_bytes;
};

class FilterInput {
 public:
  FilterInput(const ConvolutionArguments& arguments, const void* device)
      : dense_(arguments.w, device), turned_(arguments.turned ? arguments.shape.FilterCount() : 0) {
    if (arguments.turned) TurnFilter(arguments.shape, dense_.data(), turned_.data());
  }
  float* data() const {
    return turned_.data() != nullptr ? turned_.data() : const_cast<float*>(dense_.data());
  }

 private:
  DenseInput dense_;
  Scratch turned_;
};

struct ForwardOperation : ConvolutionArguments {
  static constexpr char kName[] = "cudnn_convolution_forward";
  static constexpr int kOperands = 4;  // x, w, y, workspace
  void Run(void* const* operands) const {
    MarkWorkspace(operands[3], workspace_bytes);
    const DenseInput input(x, operands[0]);
    const FilterInput filter(*this, operands[1]);
    DenseOutput output(y, operands[2], alpha, beta);
    RunConvolution(Direction::kForward, shape,
                   {const_cast<float*>(input.data()), filter.data(), output.data()});
    output.Commit();
  }
};

struct BackwardDataOperation : ConvolutionArguments {
  static constexpr char kName[] = "cudnn_convolution_backward_data";
  static constexpr int kOperands = 4;  // w, dy, dx, workspace
  void Run(void* const* operands) const {
    MarkWorkspace(operands[3], workspace_bytes);
    const FilterInput filter(*this, operands[0]);
    const DenseInput gradient(y, operands[1]);
    DenseOutput output(x, operands[2], alpha, beta);
    RunConvolution(Direction::kBackwardData, shape,
                   {output.data(), filter.data(), const_cast<float*>(gradient.data())});
    output.Commit();
  }
};

struct BackwardFilterOperation : ConvolutionArguments {
  static constexpr char kName[] = "cudnn_convolution_backward_filter";
  static constexpr int kOperands = 4;  // x, dy, dw, workspace
  void Run(void* const* operands) const {
    MarkWorkspace(operands[3], workspace_bytes);
    const DenseInput input(x, operands[0]);
    const DenseInput gradient(y, operands[1]);
    DenseOutput output(w, operands[2], alpha, beta);
    const Scratch correlated(turned ? shape.FilterCount() : 0);
    float* result = turned ? correlated.data() : output.data();
    RunConvolution(Direction::kBackwardFilter, shape,
                   {const_cast<float*>(input.data()), result, const_cast<float*>(gradient.data())});
    if (turned) TurnFilter(shape, result, output.data());
    output.Commit();
  }
};

struct BiasActivationOperation : ConvolutionArguments {
  static constexpr char kName[] = "cudnn_convolution_bias_activation_forward";
  static constexpr int kOperands = 6;  // x, w, z, bias, y, workspace
  TensorView z;
  TensorView bias;
  float alpha_z;
  Activation activation;

  // y = activation(alpha * convolution + alpha_z * z + bias); z may be y.
  void Run(void* const* operands) const {
    MarkWorkspace(operands[5], workspace_bytes);
    const DenseInput input(x, operands[0]);
    const FilterInput filter(*this, operands[1]);
    const DenseInput addend(z, operands[2]);
    const DenseInput per_channel(bias, operands[3]);
    const Scratch product(y.Count());
    RunConvolution(Direction::kForward, shape,
                   {const_cast<float*>(input.data()), filter.data(), product.data()});
    DenseOutput output(y, operands[4], 1, 0);
    const std::int64_t pixels = shape.OutputPixels();
    for (std::int64_t plane = 0; plane < shape.images * shape.output_channels; ++plane) {
      const float channel_bias = per_channel.data()[plane % shape.output_channels];
      for (std::int64_t i = plane * pixels; i < (plane + 1) * pixels; ++i) {
        const float added = alpha_z != 0 ? alpha_z * addend.data()[i] : 0.0f;
        output.data()[i] = activation.Forward(alpha * product.data()[i] + added + channel_bias);
      }
    }
    output.Commit();
  }
};

struct BackwardBiasOperation {
  static constexpr char kName[] = "cudnn_convolution_backward_bias";
  static constexpr int kOperands = 2;  // dy, db
  TensorView y;
  TensorView bias;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput gradient(y, operands[0]);
    DenseOutput output(bias, operands[1], alpha, beta);
    const std::int64_t channels = y.dims[1];
    const std::int64_t pixels = y.Inner(2);
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::int64_t n = 0; n < y.dims[0]; ++n)
        sum += Sum(gradient.data() + (n * channels + c) * pixels, pixels);
      output.data()[c] = static_cast<float>(sum);
    }
    output.Commit();
  }
};

cudnnStatus_t Prepare(Direction direction, const ConvolutionCall& call, int algorithm,
                      const void* workspace, size_t workspace_bytes, const void* alpha,
                      const void* beta, AlgorithmModel* model, ConvolutionArguments* arguments) {
  SPILLWAY_DNN_REQUIRE(alpha != nullptr && beta != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *model = ModelAlgorithm(direction, algorithm, call.shape);
  SPILLWAY_DNN_REQUIRE(model->supported, CUDNN_STATUS_NOT_SUPPORTED);
  const bool workspace_suffices =
      model->workspace_bytes == 0 ||
      (workspace != nullptr && workspace_bytes >= model->workspace_bytes);
  SPILLWAY_DNN_REQUIRE(workspace_suffices, CUDNN_STATUS_BAD_PARAM);
  *arguments = {call.shape,
                call.x,
                call.w,
                call.y,
                ScalarOf(alpha),
                ScalarOf(beta),
                call.turned ? 1 : 0,
                model->workspace_bytes};
  return CUDNN_STATUS_SUCCESS;
}

Operand Workspace(void* workspace, const AlgorithmModel& model) {
  return Writes(model.workspace_bytes == 0 ? nullptr : workspace, model.workspace_bytes);
}

// The operands count the workspace once; further passes are extra.
double ExtraBytes(const AlgorithmModel& model) {
  return std::max(0.0, model.workspace_passes - 1) * static_cast<double>(model.workspace_bytes);
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void* x,
                                      const cudnnFilterDescriptor_t w_desc, const void* w,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y_desc, void* y) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && x != nullptr && w != nullptr && y != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  ConvolutionCall call = {};
  AlgorithmModel model = {};
  ForwardOperation operation = {};
  cudnnStatus_t status = DescribeConvolution(x_desc, w_desc, convolution, y_desc, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = Prepare(Direction::kForward, call, algorithm, workspace, workspace_bytes, alpha, beta,
                   &model, &operation);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return FromDriver(Enqueue(
      StreamOf(handle), operation,
      {Input(call.x, x), Input(call.w, w), Output(call.y, y, beta), Workspace(workspace, model)},
      model.effective_flops, ExtraBytes(model)));
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void* w,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx_desc, void* dx) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && w != nullptr && dy != nullptr && dx != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  ConvolutionCall call = {};
  AlgorithmModel model = {};
  BackwardDataOperation operation = {};
  cudnnStatus_t status = DescribeConvolution(dx_desc, w_desc, convolution, dy_desc, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = Prepare(Direction::kBackwardData, call, algorithm, workspace, workspace_bytes, alpha,
                   beta, &model, &operation);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return FromDriver(Enqueue(
      StreamOf(handle), operation,
      {Input(call.w, w), Input(call.y, dy), Output(call.x, dx, beta), Workspace(workspace, model)},
      model.effective_flops, ExtraBytes(model)));
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void* x,
                                             const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, size_t workspace_bytes,
                                             const void* beta,
                                             const cudnnFilterDescriptor_t dw_desc, void* dw) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && x != nullptr && dy != nullptr && dw != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  ConvolutionCall call = {};
  AlgorithmModel model = {};
  BackwardFilterOperation operation = {};
  cudnnStatus_t status = DescribeConvolution(x_desc, dw_desc, convolution, dy_desc, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = Prepare(Direction::kBackwardFilter, call, algorithm, workspace, workspace_bytes, alpha,
                   beta, &model, &operation);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return FromDriver(Enqueue(
      StreamOf(handle), operation,
      {Input(call.x, x), Input(call.y, dy), Output(call.w, dw, beta), Workspace(workspace, model)},
      model.effective_flops, ExtraBytes(model)));
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const void* beta, const cudnnTensorDescriptor_t db_desc,
                                           void* db) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && alpha != nullptr && dy != nullptr && beta != nullptr && db != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y, dy_desc);
  SPILLWAY_DNN_VIEW(bias, db_desc);
  SPILLWAY_DNN_REQUIRE(
      y.rank >= 3 && bias.rank == y.rank && bias.dims[1] == y.dims[1] && bias.Count() == y.dims[1],
      CUDNN_STATUS_BAD_PARAM);
  return FromDriver(
      Enqueue(StreamOf(handle), BackwardBiasOperation{y, bias, ScalarOf(alpha), ScalarOf(beta)},
              {Input(y, dy), Output(bias, db, beta)}, static_cast<double>(y.Count())));
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t w_desc, const void* w,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
    void* workspace, size_t workspace_bytes, const void* alpha2,
    const cudnnTensorDescriptor_t z_desc, const void* z, const cudnnTensorDescriptor_t bias_desc,
    const void* bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y_desc, void* y) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && x != nullptr && w != nullptr && z != nullptr &&
                           bias != nullptr && y != nullptr && activation != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const bool mode_fits =
      activation->mode == CUDNN_ACTIVATION_RELU || activation->mode == CUDNN_ACTIVATION_IDENTITY;
  SPILLWAY_DNN_REQUIRE(mode_fits, CUDNN_STATUS_NOT_SUPPORTED);  // the two that cuDNN documents
  ConvolutionCall call = {};
  AlgorithmModel model = {};
  BiasActivationOperation operation = {};
  cudnnStatus_t status = DescribeConvolution(x_desc, w_desc, convolution, y_desc, &call);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = Prepare(Direction::kForward, call, algorithm, workspace, workspace_bytes, alpha1, alpha2,
                   &model, &operation);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  SPILLWAY_DNN_VIEW(z_view, z_desc);
  SPILLWAY_DNN_VIEW(bias_view, bias_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(z_view, call.y) && bias_view.Count() == call.y.dims[1],
                       CUDNN_STATUS_BAD_PARAM);
  operation.z = z_view;
  operation.bias = bias_view;
  operation.alpha_z = ScalarOf(alpha2);
  operation.activation = {activation->mode, static_cast<float>(activation->coefficient),
                          static_cast<float>(activation->swish_beta)};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(call.x, x), Input(call.w, w), Input(z_view, z), Input(bias_view, bias),
               Writes(y, call.y.ExtentBytes()), Workspace(workspace, model)},
              model.effective_flops, ExtraBytes(model)));
}

}  // extern "C"
