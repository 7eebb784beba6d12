// One convolution's descriptors and algorithms for the current shape.
//
// Used by: Convolution (layers.cuh), on the main thread.
// Ownership: owns its descriptors; a workspace is Memory's.
//
// Invariants
//
// 1. The algorithm is the first in cuDNN's ranking that is deterministic and fits the fixed
//    workspace limit. Where none fits, it is the deterministic one with the smallest workspace.
//    Free memory is never queried, so results cannot depend on it.
// 2. The choice is repeated only when the input's shape changes.
#pragma once

#include <memory>

#include "device.cuh"
#include "tensor.cuh"

namespace workloads {

template <typename Algorithm>
struct ChosenAlgorithm {
  Algorithm algorithm{};
  std::size_t workspace_bytes = 0;
};

// `ranked` as cudnnGetConvolution*Algorithm_v7 filled it: fastest first.
template <typename Performance, typename Algorithm>
void choose(const Performance* ranked, int count, std::size_t limit_bytes,
            ChosenAlgorithm<Algorithm>* chosen) {
  const Performance* smallest = nullptr;
  for (int i = 0; i < count; ++i) {
    const Performance& candidate = ranked[i];
    if (candidate.status != CUDNN_STATUS_SUCCESS || candidate.determinism != CUDNN_DETERMINISTIC)
      continue;
    if (candidate.memory <= limit_bytes) {
      *chosen = {candidate.algo, candidate.memory};
      return;
    }
    if (smallest == nullptr || candidate.memory < smallest->memory) smallest = &candidate;
  }
  if (smallest == nullptr)
    fail(1, "cuDNN has no deterministic algorithm for a convolution of this shape");
  *chosen = {smallest->algo, smallest->memory};
}

class ConvolutionPlan {
 public:
  struct Geometry {
    int pad_height, pad_width, stride, groups;
  };

  ConvolutionPlan(Device* device, Geometry geometry) : device_(device) {
    CHECK(cudnnCreateConvolutionDescriptor(&convolution_));
    CHECK(cudnnSetConvolution2dDescriptor(convolution_, geometry.pad_height, geometry.pad_width,
                                          geometry.stride, geometry.stride, 1, 1,
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(cudnnSetConvolutionGroupCount(convolution_, geometry.groups));
    CHECK(cudnnCreateFilterDescriptor(&filter_));
  }
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;
  ~ConvolutionPlan() {
    CHECK(cudnnDestroyFilterDescriptor(filter_));
    CHECK(cudnnDestroyConvolutionDescriptor(convolution_));
  }

  void prepare(Shape x_shape, Shape filter_shape) {
    if (x_shape == x_shape_) return;
    x_shape_ = x_shape;
    CHECK(cudnnSetFilter4dDescriptor(filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filter_shape.n,
                                     filter_shape.c, filter_shape.h, filter_shape.w));
    x_ = std::make_unique<TensorDescriptor>(x_shape);
    CHECK(cudnnGetConvolution2dForwardOutputDim(convolution_, *x_, filter_, &y_shape_.n,
                                                &y_shape_.c, &y_shape_.h, &y_shape_.w));
    y_ = std::make_unique<TensorDescriptor>(y_shape_);
    print_layer(device_->prints_layers(), filter_shape, y_shape_);
    choose_algorithms();
  }

  Shape output_shape() const { return y_shape_; }

  void forward(const Tensor& x, const Tensor& filter, const Tensor& y) const {
    const auto workspace = device_->memory()->workspace(forward_.workspace_bytes);
    CHECK(cudnnConvolutionForward(device_->cudnn(), &kOne, *x_, x.data(), filter_, filter.data(),
                                  convolution_, forward_.algorithm, address_of(workspace),
                                  forward_.workspace_bytes, &kZero, *y_, y.data()));
  }

  void filter_gradient(const Tensor& x, const Tensor& dy, const Tensor& gradient) const {
    const auto workspace = device_->memory()->workspace(backward_filter_.workspace_bytes);
    CHECK(cudnnConvolutionBackwardFilter(device_->cudnn(), &kOne, *x_, x.data(), *y_, dy.data(),
                                         convolution_, backward_filter_.algorithm,
                                         address_of(workspace), backward_filter_.workspace_bytes,
                                         &kZero, filter_, gradient.data()));
  }

  void input_gradient(const Tensor& filter, const Tensor& dy, const Tensor& dx) const {
    const auto workspace = device_->memory()->workspace(backward_data_.workspace_bytes);
    CHECK(cudnnConvolutionBackwardData(device_->cudnn(), &kOne, filter_, filter.data(), *y_,
                                       dy.data(), convolution_, backward_data_.algorithm,
                                       address_of(workspace), backward_data_.workspace_bytes,
                                       &kZero, *x_, dx.data()));
  }

  void add_bias(const Tensor& bias, const Tensor& y) const {
    const TensorDescriptor channels(bias.shape);
    CHECK(cudnnAddTensor(device_->cudnn(), &kOne, channels, bias.data(), &kOne, *y_, y.data()));
  }

  void bias_gradient(const Tensor& dy, const Tensor& gradient) const {
    const TensorDescriptor channels(gradient.shape);
    CHECK(cudnnConvolutionBackwardBias(device_->cudnn(), &kOne, *y_, dy.data(), &kZero, channels,
                                       gradient.data()));
  }

 private:
  static constexpr float kOne = 1.0f, kZero = 0.0f;
  static constexpr int kMostAlgorithms = 16;

  static void* address_of(const SharedBuffer& workspace) {
    return workspace == nullptr ? nullptr : workspace->address();
  }

  void choose_algorithms() {
    const std::size_t limit_bytes = device_->workspace_limit_bytes();
    int count = 0;
    cudnnConvolutionFwdAlgoPerf_t forward[kMostAlgorithms];
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(device_->cudnn(), *x_, filter_, convolution_, *y_,
                                                 kMostAlgorithms, &count, forward));
    choose(forward, count, limit_bytes, &forward_);
    cudnnConvolutionBwdFilterAlgoPerf_t backward_filter[kMostAlgorithms];
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(device_->cudnn(), *x_, *y_, convolution_,
                                                        filter_, kMostAlgorithms, &count,
                                                        backward_filter));
    choose(backward_filter, count, limit_bytes, &backward_filter_);
    cudnnConvolutionBwdDataAlgoPerf_t backward_data[kMostAlgorithms];
    CHECK(cudnnGetConvolutionBackwardDataAlgorithm_v7(device_->cudnn(), filter_, *y_, convolution_,
                                                      *x_, kMostAlgorithms, &count, backward_data));
    choose(backward_data, count, limit_bytes, &backward_data_);
  }

  Device* const device_;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
  std::unique_ptr<TensorDescriptor> x_, y_;
  Shape x_shape_, y_shape_;
  ChosenAlgorithm<cudnnConvolutionFwdAlgo_t> forward_;
  ChosenAlgorithm<cudnnConvolutionBwdFilterAlgo_t> backward_filter_;
  ChosenAlgorithm<cudnnConvolutionBwdDataAlgo_t> backward_data_;
};

}  // namespace workloads
