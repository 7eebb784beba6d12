// A fully connected layer: y = x * weights^T + bias over rows of features.
//
// Used by: all trainers, on the main thread.
// Shapes: x [rows, inputs] (a batch of maps counts as flattened), weights [outputs, inputs], y
// [rows, outputs].
#pragma once

#include "gemm.cuh"
#include "layer.h"

namespace workloads {

class Linear final : public Layer {
 public:
  Linear(Device* device, ParameterFactory* factory, int inputs, int outputs)
      : device_(device),
        inputs_(inputs),
        outputs_(outputs),
        weights_(factory->uniform({outputs, inputs}, inputs, 1.0f)),
        bias_(factory->constant({1, outputs}, 0.0f)) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    const int rows = x.shape.n;
    Tensor y = transient_tensor(device_->memory(), {rows, outputs_});
    print_once(y.shape);
    gemm(*device_, {rows, outputs_, inputs_}, Form::kPlain, x.data(), Form::kTransposed,
         weights_.value.data(), 0.0f, y.data());
    const TensorDescriptor output(y.shape), bias(bias_.value.shape);
    const float one = 1.0f;
    CHECK(cudnnAddTensor(device_->cudnn(), &one, bias, bias_.value.data(), &one, output, y.data()));
    if (mode == Mode::kTrain) x_ = x;
    return y;
  }

  Tensor backward(Tensor dy) override {
    const int rows = dy.shape.n;
    bias_gradient(dy);
    weights_.gradient = transient_tensor(device_->memory(), weights_.value.shape);
    gemm(*device_, {outputs_, inputs_, rows}, Form::kTransposed, dy.data(), Form::kPlain, x_.data(),
         0.0f, weights_.gradient.data());
    const Shape x_shape = x_.shape;
    x_.reset();
    Tensor dx = transient_tensor(device_->memory(), x_shape);
    gemm(*device_, {rows, inputs_, outputs_}, Form::kPlain, dy.data(), Form::kPlain,
         weights_.value.data(), 0.0f, dx.data());
    return dx;
  }

  void collect(Parameters* parameters) override {
    parameters->push_back(&weights_);
    parameters->push_back(&bias_);
  }

 private:
  void print_once(Shape y) {
    if (!is_printed_) print_layer(device_->prints_layers(), weights_.value.shape, y);
    is_printed_ = true;
  }

  // The sum over rows, as a product with a vector of ones.
  void bias_gradient(const Tensor& dy) {
    const int rows = dy.shape.n;
    const float one = 1.0f, zero = 0.0f;
    const Tensor ones = transient_tensor(device_->memory(), {rows});
    fill_constant<<<blocks_for(ones.elements()), kThreads, 0, device_->compute_stream()>>>(
        ones.data(), ones.elements(), 1.0f);
    CHECK_LAUNCH("fill_constant");
    bias_.gradient = transient_tensor(device_->memory(), bias_.value.shape);
    CHECK(cublasSgemv(device_->cublas(), CUBLAS_OP_N, outputs_, rows, &one, dy.data(), outputs_,
                      ones.data(), 1, &zero, bias_.gradient.data(), 1));
  }

  Device* const device_;
  const int inputs_, outputs_;
  Parameter weights_, bias_;
  Tensor x_;
  bool is_printed_ = false;
};

}  // namespace workloads
