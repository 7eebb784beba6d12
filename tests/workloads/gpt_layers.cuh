// The layers of a pre-norm transformer: layer norm, GELU, causal attention, and their block.
//
// Used by: gpt, on the main thread. Ownership and invariants as in common/layers.cuh: forward makes
// a new tensor and keeps what backward reads; backward releases it.
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include "common/linear.cuh"
#include "gpt_kernels.cuh"

namespace workloads {

struct GptShape {
  int batch, sequence, width, heads;

  int tokens() const { return batch * sequence; }
  int depth() const { return width / heads; }
};

inline Tensor sum_of(Device* device, const Tensor& a, const Tensor& b) {
  Tensor sum = transient_tensor(device->memory(), a.shape);
  add<<<blocks_for(sum.elements()), kThreads, 0, device->compute_stream()>>>(
      a.data(), b.data(), sum.elements(), sum.data());
  CHECK_LAUNCH("add");
  return sum;
}

class LayerNorm final : public Layer {
 public:
  LayerNorm(Device* device, ParameterFactory* factory, int width)
      : device_(device),
        width_(width),
        scale_(factory->constant({1, width}, 1.0f)),
        shift_(factory->constant({1, width}, 0.0f)) {}

  Tensor forward(const Tensor& x, Mode) override {
    const int rows = x.shape.n;
    x_ = x;
    means_ = transient_tensor(device_->memory(), {rows});
    inverse_deviations_ = transient_tensor(device_->memory(), {rows});
    Tensor y = transient_tensor(device_->memory(), x.shape);
    layer_norm_forward<<<blocks_for_rows(rows), kWarpsPerBlock * 32, 0,
                         device_->compute_stream()>>>(
        x.data(), scale_.value.data(), shift_.value.data(), rows, width_, kEpsilon, y.data(),
        means_.data(), inverse_deviations_.data());
    CHECK_LAUNCH("layer_norm_forward");
    return y;
  }

  Tensor backward(Tensor dy) override {
    const int rows = dy.shape.n;
    scale_.gradient = transient_tensor(device_->memory(), scale_.value.shape);
    shift_.gradient = transient_tensor(device_->memory(), shift_.value.shape);
    const dim3 grid(static_cast<unsigned>((width_ + kColumns - 1) / kColumns)),
        block(kColumns, kRowGroups);
    layer_norm_parameter_gradients<<<grid, block, 2 * kColumns * kRowGroups * sizeof(float),
                                     device_->compute_stream()>>>(
        x_.data(), dy.data(), means_.data(), inverse_deviations_.data(), rows, width_,
        scale_.gradient.data(), shift_.gradient.data());
    CHECK_LAUNCH("layer_norm_parameter_gradients");
    Tensor dx = transient_tensor(device_->memory(), dy.shape);
    layer_norm_backward<<<blocks_for_rows(rows), kWarpsPerBlock * 32, 0,
                          device_->compute_stream()>>>(x_.data(), dy.data(), scale_.value.data(),
                                                       means_.data(), inverse_deviations_.data(),
                                                       rows, width_, dx.data());
    CHECK_LAUNCH("layer_norm_backward");
    for (Tensor* kept : {&x_, &means_, &inverse_deviations_}) kept->reset();
    return dx;
  }

  void collect(Parameters* parameters) override {
    parameters->push_back(&scale_);
    parameters->push_back(&shift_);
  }

 private:
  static constexpr float kEpsilon = 1e-5f;

  Device* const device_;
  const int width_;
  Parameter scale_, shift_;
  Tensor x_, means_, inverse_deviations_;
};

class Gelu final : public Layer {
 public:
  explicit Gelu(Device* device) : device_(device) {}

  Tensor forward(const Tensor& x, Mode) override {
    x_ = x;
    Tensor y = transient_tensor(device_->memory(), x.shape);
    gelu_forward<<<blocks_for(y.elements()), kThreads, 0, device_->compute_stream()>>>(
        x.data(), y.elements(), y.data());
    CHECK_LAUNCH("gelu_forward");
    return y;
  }

  Tensor backward(Tensor dy) override {
    Tensor dx = transient_tensor(device_->memory(), dy.shape);
    gelu_backward<<<blocks_for(dx.elements()), kThreads, 0, device_->compute_stream()>>>(
        x_.data(), dy.data(), dx.elements(), dx.data());
    CHECK_LAUNCH("gelu_backward");
    x_.reset();
    return dx;
  }

 private:
  Device* const device_;
  Tensor x_;
};

// Scaled dot-product attention of several heads, between the projections in and out.
class Attention final : public Layer {
 public:
  Attention(Device* device, ParameterFactory* factory, GptShape shape)
      : device_(device),
        shape_(shape),
        scale_(1.0f / std::sqrt(static_cast<float>(shape.depth()))),
        project_in_(device, factory, shape.width, kGroups * shape.width),
        project_out_(device, factory, shape.width, shape.width) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    split(project_in_.forward(x, mode));
    probabilities_ = attend();
    Tensor mixed = head_tensor();
    batched_gemm(*device_, {shape_.sequence, shape_.depth(), shape_.sequence}, matrices(), 1.0f,
                 Form::kPlain, probabilities_.data(), Form::kPlain, heads_[kValue].data(),
                 mixed.data());
    Tensor merged = transient_tensor(device_->memory(), {shape_.tokens(), shape_.width});
    merge(mixed, 1, 0, merged);
    mixed.reset();
    return project_out_.forward(merged, mode);
  }

  Tensor backward(Tensor dy) override {
    Tensor d_merged = project_out_.backward(std::move(dy));
    Tensor d_mixed = head_tensor();
    split_one(d_merged, 1, 0, d_mixed);
    d_merged.reset();
    Tensor d_packed =
        transient_tensor(device_->memory(), {shape_.tokens(), kGroups * shape_.width});
    value_gradient(d_mixed, d_packed);
    const Tensor d_scores = score_gradient(std::move(d_mixed));
    query_and_key_gradients(d_scores, d_packed);
    for (Tensor& head : heads_) head.reset();
    return project_in_.backward(std::move(d_packed));
  }

  void collect(Parameters* parameters) override {
    project_in_.collect(parameters);
    project_out_.collect(parameters);
  }

 private:
  enum Group { kQuery, kKey, kValue, kGroups };

  int matrices() const { return shape_.batch * shape_.heads; }
  int score_rows() const { return matrices() * shape_.sequence; }
  Tensor head_tensor() const {
    return transient_tensor(device_->memory(),
                            {shape_.batch, shape_.heads, shape_.sequence, shape_.depth()});
  }
  Tensor score_tensor() const {
    return transient_tensor(device_->memory(),
                            {shape_.batch, shape_.heads, shape_.sequence, shape_.sequence});
  }
  HeadShape head_shape() const { return {shape_.sequence, shape_.heads, shape_.depth()}; }

  void split_one(const Tensor& packed, int groups, int group, const Tensor& heads) const {
    split_heads<<<blocks_for(heads.elements()), kThreads, 0, device_->compute_stream()>>>(
        packed.data(), head_shape(), groups, group, heads.elements(), heads.data());
    CHECK_LAUNCH("split_heads");
  }

  void merge(const Tensor& heads, int groups, int group, const Tensor& packed) const {
    merge_heads<<<blocks_for(heads.elements()), kThreads, 0, device_->compute_stream()>>>(
        heads.data(), head_shape(), groups, group, heads.elements(), packed.data());
    CHECK_LAUNCH("merge_heads");
  }

  void split(const Tensor& packed) {
    for (int group = 0; group < kGroups; ++group) {
      heads_[group] = head_tensor();
      split_one(packed, kGroups, group, heads_[group]);
    }
  }

  Tensor attend() const {
    const Tensor scores = score_tensor();
    batched_gemm(*device_, {shape_.sequence, shape_.sequence, shape_.depth()}, matrices(), scale_,
                 Form::kPlain, heads_[kQuery].data(), Form::kTransposed, heads_[kKey].data(),
                 scores.data());
    Tensor probabilities = score_tensor();
    causal_softmax_forward<<<blocks_for_rows(score_rows()), kWarpsPerBlock * 32, 0,
                             device_->compute_stream()>>>(scores.data(), score_rows(),
                                                          shape_.sequence, probabilities.data());
    CHECK_LAUNCH("causal_softmax_forward");
    return probabilities;
  }

  void value_gradient(const Tensor& d_mixed, const Tensor& d_packed) const {
    const Tensor d_value = head_tensor();
    batched_gemm(*device_, {shape_.sequence, shape_.depth(), shape_.sequence}, matrices(), 1.0f,
                 Form::kTransposed, probabilities_.data(), Form::kPlain, d_mixed.data(),
                 d_value.data());
    merge(d_value, kGroups, kValue, d_packed);
  }

  // Consumes the probabilities.
  Tensor score_gradient(Tensor d_mixed) {
    Tensor d_probabilities = score_tensor();
    batched_gemm(*device_, {shape_.sequence, shape_.sequence, shape_.depth()}, matrices(), 1.0f,
                 Form::kPlain, d_mixed.data(), Form::kTransposed, heads_[kValue].data(),
                 d_probabilities.data());
    d_mixed.reset();
    Tensor d_scores = score_tensor();
    causal_softmax_backward<<<blocks_for_rows(score_rows()), kWarpsPerBlock * 32, 0,
                              device_->compute_stream()>>>(probabilities_.data(),
                                                           d_probabilities.data(), score_rows(),
                                                           shape_.sequence, d_scores.data());
    CHECK_LAUNCH("causal_softmax_backward");
    probabilities_.reset();
    return d_scores;
  }

  void query_and_key_gradients(const Tensor& d_scores, const Tensor& d_packed) const {
    const GemmShape product = {shape_.sequence, shape_.depth(), shape_.sequence};
    const Tensor d_query = head_tensor();
    batched_gemm(*device_, product, matrices(), scale_, Form::kPlain, d_scores.data(), Form::kPlain,
                 heads_[kKey].data(), d_query.data());
    merge(d_query, kGroups, kQuery, d_packed);
    const Tensor d_key = head_tensor();
    batched_gemm(*device_, product, matrices(), scale_, Form::kTransposed, d_scores.data(),
                 Form::kPlain, heads_[kQuery].data(), d_key.data());
    merge(d_key, kGroups, kKey, d_packed);
  }

  Device* const device_;
  const GptShape shape_;
  const float scale_;
  Linear project_in_, project_out_;
  Tensor heads_[kGroups];
  Tensor probabilities_;
};

// x + attention(norm(x)), then that + mlp(norm(that)).
class Block final : public Layer {
 public:
  Block(Device* device, ParameterFactory* factory, GptShape shape) : device_(device) {
    attention_.add<LayerNorm>(device, factory, shape.width).add<Attention>(device, factory, shape);
    mlp_.add<LayerNorm>(device, factory, shape.width)
        .add<Linear>(device, factory, shape.width, 4 * shape.width);
    mlp_.add<Gelu>(device).add<Linear>(device, factory, 4 * shape.width, shape.width);
  }

  Tensor forward(const Tensor& x, Mode mode) override {
    const Tensor attended = sum_of(device_, x, attention_.forward(x, mode));
    return sum_of(device_, attended, mlp_.forward(attended, mode));
  }

  Tensor backward(Tensor dy) override {
    Tensor d_attended = sum_of(device_, dy, mlp_.backward(dy));
    dy.reset();
    return sum_of(device_, d_attended, attention_.backward(d_attended));
  }

  void collect(Parameters* parameters) override {
    attention_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  Device* const device_;
  Chain attention_, mlp_;
};

}  // namespace workloads
