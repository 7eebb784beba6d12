// A chain of layers under construction, together with the shape of the maps at its end.
//
// Used by: the networks in branched_models.cuh, on the main thread, while they are built.
// Ownership: layers() hands over the chain.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/branches.cuh"
#include "common/layers.cuh"
#include "common/regularization.cuh"

namespace workloads {

struct Maps {
  int channels, side;
};

class MapChain {
 public:
  struct Kernel {
    int height, width;
    Kernel(int side) : height(side), width(side) {}
    Kernel(int the_height, int the_width) : height(the_height), width(the_width) {}
  };
  static constexpr int kSame = Convolution::kHalfKernel;

  MapChain(Device* device, ParameterFactory* factory, Maps maps)
      : device_(device), factory_(factory), maps_(maps), chain_(std::make_unique<Chain>()) {}

  // A branch that begins with the maps at this chain's end.
  MapChain branch() const { return MapChain(device_, factory_, maps_); }

  Maps maps() const { return maps_; }
  std::unique_ptr<Chain> layers() { return std::move(chain_); }

  // With a bias, before relu.
  MapChain& conv_relu(int channels, Kernel kernel, int stride = 1, int padding = kSame) {
    convolution(channels, kernel, stride, padding, true);
    chain_->add<Relu>(device_);
    return *this;
  }

  // With batch norm, before relu.
  MapChain& conv_norm_relu(int channels, Kernel kernel, int stride = 1, int padding = kSame) {
    convolution(channels, kernel, stride, padding, false);
    chain_->add<BatchNorm>(device_, factory_, channels).template add<Relu>(device_);
    return *this;
  }

  MapChain& max_pool(int size, int stride, int padding = 0) {
    return pool(Pool::Kind::kMaximum, {size, stride, padding});
  }
  MapChain& mean_pool(int size, int stride, int padding = 0) {
    return pool(Pool::Kind::kMean, {size, stride, padding});
  }
  MapChain& mean_of_maps() { return mean_pool(maps_.side, 1); }

  MapChain& lrn() {
    chain_->add<Lrn>(device_);
    return *this;
  }

  MapChain& dropout(float probability) {
    chain_->add<Dropout>(device_, probability, dropouts_++);
    return *this;
  }

  MapChain& linear(int outputs) {
    chain_->add<Linear>(device_, factory_, maps_.channels * maps_.side * maps_.side, outputs);
    maps_ = {outputs, 1};
    return *this;
  }

  MapChain& linear_relu(int outputs) {
    linear(outputs);
    chain_->add<Relu>(device_);
    return *this;
  }

  // All of the same side.
  MapChain& join(std::vector<MapChain> branches) {
    std::vector<std::unique_ptr<Chain>> chains;
    int channels = 0;
    for (MapChain& branch : branches) {
      channels += branch.maps_.channels;
      maps_.side = branch.maps_.side;
      chains.push_back(branch.layers());
    }
    maps_.channels = channels;
    chain_->add<Branches>(device_, std::move(chains));
    return *this;
  }

 private:
  static int extent(int side, int window, int stride, int padding) {
    return (side + 2 * padding - window) / stride + 1;
  }

  void convolution(int channels, Kernel kernel, int stride, int padding, bool bias) {
    Convolution::Options options{maps_.channels, channels, kernel.height, stride, bias, is_first_};
    options.kernel_width = kernel.width;
    options.padding = padding;
    chain_->add<Convolution>(device_, factory_, options);
    const int pad = padding == kSame ? (kernel.height - 1) / 2 : padding;
    maps_ = {channels, extent(maps_.side, kernel.height, stride, pad)};
    is_first_ = false;
  }

  MapChain& pool(Pool::Kind kind, Pool::Window window) {
    chain_->add<Pool>(device_, kind, window);
    maps_.side = extent(maps_.side, window.size, window.stride, window.padding);
    return *this;
  }

  Device* device_;
  ParameterFactory* factory_;
  Maps maps_;
  std::unique_ptr<Chain> chain_;
  bool is_first_ = maps_.channels == 3;  // the images
  int dropouts_ = 0;
};

}  // namespace workloads
