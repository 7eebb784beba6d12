#include <algorithm>
#include <cmath>

#include "simulator/dnn/cudnn/activation.h"
#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

struct ActivationForwardOperation {
  static constexpr char kName[] = "cudnn_activation_forward";
  static constexpr int kOperands = 2;  // x, y
  TensorView x;
  TensorView y;
  Activation activation;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    const std::int64_t count = x.Count();
    if (activation.mode ==
        CUDNN_ACTIVATION_RELU) {  // by far the most frequent: a loop that vectorizes
      for (std::int64_t i = 0; i < count; ++i)
        output.data()[i] = input.data()[i] < 0 ? 0.0f : input.data()[i];
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        output.data()[i] = activation.Forward(input.data()[i]);
    }
    output.Commit();
  }
};

struct ActivationBackwardOperation {
  static constexpr char kName[] = "cudnn_activation_backward";
  static constexpr int kOperands = 4;  // y, dy, x, dx
  TensorView y;
  TensorView dy;
  TensorView x;
  TensorView dx;
  Activation activation;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput result(y, operands[0]);
    const DenseInput gradient(dy, operands[1]);
    const DenseInput input(x, operands[2]);
    DenseOutput output(dx, operands[3], alpha, beta);
    const std::int64_t count = x.Count();
    for (std::int64_t i = 0; i < count; ++i) {
      output.data()[i] = activation.Backward(result.data()[i], gradient.data()[i], input.data()[i]);
    }
    output.Commit();
  }
};

// Through the shape of a larger tensor: dimensions of size 1 are repeated.
class Broadcast {
 public:
  Broadcast(const TensorView& small, const TensorView& large) : rank_(large.rank) {
    std::int64_t stride = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      strides_[d] = small.dims[d] == 1 ? 0 : stride;
      dims_[d] = large.dims[d];
      stride *= small.dims[d];
    }
  }
  std::int64_t InnerStride() const { return strides_[rank_ - 1]; }
  std::int64_t RowOffset(std::int64_t row) const {
    std::int64_t offset = 0;
    for (int d = rank_ - 2; d >= 0; --d) {
      offset += row % dims_[d] * strides_[d];
      row /= dims_[d];
    }
    return offset;
  }

 private:
  int rank_;
  std::int64_t dims_[kMaxRank];
  std::int64_t strides_[kMaxRank];
};

struct AddOperation {
  static constexpr char kName[] = "cudnn_add_tensor";
  static constexpr int kOperands = 2;  // A, C
  TensorView a;
  TensorView c;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput addend(a, operands[0]);
    DenseOutput output(c, operands[1], alpha, beta);
    const Broadcast broadcast(a, c);
    const std::int64_t inner = c.dims[c.rank - 1];
    for (std::int64_t row = 0; row < c.Count() / inner; ++row) {
      const float* from = addend.data() + broadcast.RowOffset(row);
      for (std::int64_t i = 0; i < inner; ++i)
        output.data()[row * inner + i] = from[i * broadcast.InnerStride()];
    }
    output.Commit();
  }
};

struct OpTensorOperation {
  static constexpr char kName[] = "cudnn_op_tensor";
  static constexpr int kOperands = 3;  // A, B, C
  TensorView a;
  TensorView b;
  TensorView c;
  cudnnOpTensorOp_t op;
  float alpha_a;
  float alpha_b;
  float beta;
  float Apply(float x, float y) const {
    switch (op) {
      case CUDNN_OP_TENSOR_ADD:
        return x + y;
      case CUDNN_OP_TENSOR_MUL:
        return x * y;
      case CUDNN_OP_TENSOR_MIN:
        return std::min(x, y);
      case CUDNN_OP_TENSOR_MAX:
        return std::max(x, y);
      case CUDNN_OP_TENSOR_SQRT:
        return std::sqrt(x);
      case CUDNN_OP_TENSOR_NOT:
        return 1.0f - x;
    }
    return x;
  }
  void Run(void* const* operands) const {
    const bool binary = op != CUDNN_OP_TENSOR_SQRT && op != CUDNN_OP_TENSOR_NOT;
    const DenseInput left(a, operands[0]);
    const DenseInput right(binary ? b : a, binary ? operands[1] : operands[0]);
    DenseOutput output(c, operands[2], 1, beta);
    const Broadcast broadcast(binary ? b : a, c);
    const std::int64_t inner = c.dims[c.rank - 1];
    for (std::int64_t row = 0; row < c.Count() / inner; ++row) {
      const float* from = right.data() + broadcast.RowOffset(row);
      for (std::int64_t i = 0; i < inner; ++i) {
        const std::int64_t at = row * inner + i;
        output.data()[at] =
            Apply(alpha_a * left.data()[at], alpha_b * from[i * broadcast.InnerStride()]);
      }
    }
    output.Commit();
  }
};

struct FillOperation {
  static constexpr char kName[] = "cudnn_set_tensor";
  static constexpr int kOperands = 1;
  TensorView y;
  float value;
  void Run(void* const* operands) const {
    DenseOutput output(y, operands[0], 1, 0);
    std::fill_n(output.data(), y.Count(), value);
    output.Commit();
  }
};

struct ScaleOperation {
  static constexpr char kName[] = "cudnn_scale_tensor";
  static constexpr int kOperands = 1;
  TensorView y;
  float factor;
  void Run(void* const* operands) const {
    const DenseInput input(y, operands[0]);
    DenseOutput output(y, operands[0], 1, 0);
    for (std::int64_t i = 0; i < y.Count(); ++i) output.data()[i] = factor * input.data()[i];
    output.Commit();
  }
};

struct TransformOperation {
  static constexpr char kName[] = "cudnn_transform_tensor";
  static constexpr int kOperands = 2;  // x, y
  TensorView x;
  TensorView y;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    std::copy_n(input.data(), x.Count(), output.data());
    output.Commit();
  }
};

Activation ActivationOf(cudnnActivationDescriptor_t activation) {
  return {activation->mode, static_cast<float>(activation->coefficient),
          static_cast<float>(activation->swish_beta)};
}

bool Broadcasts(const TensorView& small, const TensorView& large) {
  if (small.rank != large.rank) return false;
  for (int d = 0; d < small.rank; ++d) {
    if (small.dims[d] != large.dims[d] && small.dims[d] != 1) return false;
  }
  return true;
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                     const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                     const void* x, const void* beta,
                                     const cudnnTensorDescriptor_t y_desc, void* y) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && activation != nullptr && alpha != nullptr &&
                           x != nullptr && beta != nullptr && y != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(x_view, y_view) && x_view.type == y_view.type,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(x != y || x_view == y_view, CUDNN_STATUS_BAD_PARAM);
  const ActivationForwardOperation operation = {x_view, y_view, ActivationOf(activation),
                                                ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(x_view, x), Output(y_view, y, beta)},
                            4.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                      const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                      const void* y, const cudnnTensorDescriptor_t dy_desc,
                                      const void* dy, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const void* beta,
                                      const cudnnTensorDescriptor_t dx_desc, void* dx) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && activation != nullptr && alpha != nullptr &&
                           y != nullptr && dy != nullptr && x != nullptr && beta != nullptr &&
                           dx != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  SPILLWAY_DNN_REQUIRE(
      SameShape(x_view, y_view) && SameShape(x_view, dy_view) && SameShape(x_view, dx_view),
      CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(dy != dx || dy_view == dx_view, CUDNN_STATUS_BAD_PARAM);
  const ActivationBackwardOperation operation = {
      y_view, dy_view, x_view, dx_view, ActivationOf(activation), ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(y_view, y), Input(dy_view, dy), Input(x_view, x), Output(dx_view, dx, beta)},
              4.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             const cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             const cudnnTensorDescriptor_t c_desc, void* c) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && alpha != nullptr && a != nullptr && beta != nullptr && c != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(a_view, a_desc);
  SPILLWAY_DNN_VIEW(c_view, c_desc);
  SPILLWAY_DNN_REQUIRE(Broadcasts(a_view, c_view), CUDNN_STATUS_BAD_PARAM);
  return FromDriver(Enqueue(
      StreamOf(handle), AddOperation{a_view, c_view, ScalarOf(alpha), ScalarOf(beta)},
      {Input(a_view, a), Output(c_view, c, beta)}, 2.0 * static_cast<double>(c_view.Count())));
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t op,
                            const void* alpha1, const cudnnTensorDescriptor_t a_desc, const void* a,
                            const void* alpha2, const cudnnTensorDescriptor_t b_desc, const void* b,
                            const void* beta, const cudnnTensorDescriptor_t c_desc, void* c) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && op != nullptr && alpha1 != nullptr && a != nullptr &&
                           beta != nullptr && c != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(a_view, a_desc);
  SPILLWAY_DNN_VIEW(c_view, c_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(a_view, c_view), CUDNN_STATUS_BAD_PARAM);
  const bool binary = op->op != CUDNN_OP_TENSOR_SQRT && op->op != CUDNN_OP_TENSOR_NOT;
  TensorView b_view = a_view;
  if (binary) {
    SPILLWAY_DNN_REQUIRE(alpha2 != nullptr && b != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    SPILLWAY_DNN_VIEW(given, b_desc);
    SPILLWAY_DNN_REQUIRE(Broadcasts(given, c_view), CUDNN_STATUS_BAD_PARAM);
    b_view = given;
  }
  const OpTensorOperation operation = {
      a_view,        b_view, c_view, op->op, ScalarOf(alpha1), binary ? ScalarOf(alpha2) : 0,
      ScalarOf(beta)};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(a_view, a), Input(b_view, binary ? b : nullptr), Output(c_view, c, beta)},
              3.0 * static_cast<double>(c_view.Count())));
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                             const void* value) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && y != nullptr && value != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  float fill = 0;  // the value has the tensor's own type
  ConvertToFloat(y_view.type, value, 1, 1, &fill);
  return FromDriver(
      Enqueue(StreamOf(handle), FillOperation{y_view, fill}, {Writes(y, y_view.ExtentBytes())}, 0));
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                               const void* alpha) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && y != nullptr && alpha != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  return FromDriver(Enqueue(StreamOf(handle), ScaleOperation{y_view, ScalarOf(alpha)},
                            {Updates(y, y_view.ExtentBytes())},
                            static_cast<double>(y_view.Count())));
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   const cudnnTensorDescriptor_t x_desc, const void* x,
                                   const void* beta, const cudnnTensorDescriptor_t y_desc,
                                   void* y) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && alpha != nullptr && x != nullptr && beta != nullptr && y != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(x_view, y_view) && x != y, CUDNN_STATUS_BAD_PARAM);
  return FromDriver(
      Enqueue(StreamOf(handle), TransformOperation{x_view, y_view, ScalarOf(alpha), ScalarOf(beta)},
              {Input(x_view, x), Output(y_view, y, beta)}, static_cast<double>(x_view.Count())));
}

}  // extern "C"
