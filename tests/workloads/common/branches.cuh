// Branches over the same maps, whose results become one tensor, channel behind channel.
//
// Used by: convnet's GoogLeNet and Inception-v4, on the main thread.
//
// Invariants
//
// 1. One launch joins the results of all branches, and one divides the gradient, as in eager
//    frameworks. So each tensor is written whole by one launch. Branches that write into parts of
//    the joint tensor would save the copy. But the simulator counts such a part with the gaps
//    between its images, in bytes moved and in tags (docs/simulation.md).
// 2. The gradients of the branches' common input are summed in the order of the branches.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "layer.h"
#include "parameters.cuh"

namespace workloads {

inline constexpr int kMostBranches = 6;

// Of the branch that has the channel, and the channel's number in it.
struct BranchChannel {
  int branch, channel;
};

__device__ inline BranchChannel branch_channel(const int (&channels)[kMostBranches], int channel) {
  int branch = 0;
  while (channel >= channels[branch]) channel -= channels[branch++];
  return {branch, channel};
}

// One thread per element of the joint tensor [images, sum of channels, pixels]. Branches that are
// not there have no channels.
__global__ void join_channels(const float* a, const float* b, const float* c, const float* d,
                              const float* e, const float* f, int a_channels, int b_channels,
                              int c_channels, int d_channels, int e_channels, int f_channels,
                              int images, int pixels, float* joint) {
  const float* const parts[] = {a, b, c, d, e, f};
  const int channels[] = {a_channels, b_channels, c_channels, d_channels, e_channels, f_channels};
  const int sum = a_channels + b_channels + c_channels + d_channels + e_channels + f_channels;
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<std::size_t>(images) * sum * pixels) return;
  const std::size_t plane = i / pixels, image = plane / sum;
  const BranchChannel at = branch_channel(channels, static_cast<int>(plane % sum));
  joint[i] = parts[at.branch][(image * channels[at.branch] + at.channel) * pixels + i % pixels];
}

__global__ void divide_channels(float* a, float* b, float* c, float* d, float* e, float* f,
                                int a_channels, int b_channels, int c_channels, int d_channels,
                                int e_channels, int f_channels, int images, int pixels,
                                const float* joint) {
  float* const parts[] = {a, b, c, d, e, f};
  const int channels[] = {a_channels, b_channels, c_channels, d_channels, e_channels, f_channels};
  const int sum = a_channels + b_channels + c_channels + d_channels + e_channels + f_channels;
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<std::size_t>(images) * sum * pixels) return;
  const std::size_t plane = i / pixels, image = plane / sum;
  const BranchChannel at = branch_channel(channels, static_cast<int>(plane % sum));
  parts[at.branch][(image * channels[at.branch] + at.channel) * pixels + i % pixels] = joint[i];
}

class Branches final : public Layer {
 public:
  // One to kMostBranches; an empty chain passes its input on.
  Branches(Device* device, std::vector<std::unique_ptr<Chain>> branches)
      : device_(device), branches_(std::move(branches)) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor results[kMostBranches];
    Shape shape;
    int sum = 0;
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      results[i] = branches_[i]->forward(x, mode);
      shape = results[i].shape;
      channels_[i] = shape.c;
      sum += shape.c;
    }
    Tensor joint = transient_tensor(device_->memory(), {shape.n, sum, shape.h, shape.w});
    launch(join_channels, results, joint);
    return joint;
  }

  Tensor backward(Tensor dy) override {
    Tensor gradients[kMostBranches];
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      gradients[i] =
          transient_tensor(device_->memory(), {dy.shape.n, channels_[i], dy.shape.h, dy.shape.w});
    }
    launch(divide_channels, gradients, dy);
    dy.reset();
    Tensor dx;
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      Tensor addend = branches_[i]->backward(std::move(gradients[i]));
      if (i == 0) {
        dx = std::move(addend);
      } else {
        accumulate(*device_, addend, dx);
      }
    }
    return dx;
  }

  void collect(Parameters* parameters) override {
    for (const auto& branch : branches_) branch->collect(parameters);
  }

 private:
  template <typename Kernel>
  void launch(Kernel kernel, const Tensor (&parts)[kMostBranches], const Tensor& joint) const {
    float* p[kMostBranches];
    for (int i = 0; i < kMostBranches; ++i)
      p[i] = parts[i].buffer == nullptr ? nullptr : parts[i].data();
    const int(&c)[kMostBranches] = channels_;
    kernel<<<blocks_for(joint.elements()), kThreads, 0, device_->compute_stream()>>>(
        p[0], p[1], p[2], p[3], p[4], p[5], c[0], c[1], c[2], c[3], c[4], c[5], joint.shape.n,
        joint.shape.h * joint.shape.w, joint.data());
    CHECK_LAUNCH("join_channels, divide_channels");
  }

  Device* const device_;
  const std::vector<std::unique_ptr<Chain>> branches_;
  int channels_[kMostBranches] = {};
};

}  // namespace workloads
