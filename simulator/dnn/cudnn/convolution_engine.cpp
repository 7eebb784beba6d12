#include "simulator/dnn/cudnn/convolution_engine.h"

#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "simulator/dnn/common/tensor.h"

namespace spillway::simulator::dnn {
namespace {

using dnnl::memory;

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

struct Side {
  int argument;
  memory::desc plain;
  memory::desc blocked;
  std::optional<dnnl::primitive> reorder;  // plain to blocked for an input, back for the output

  bool NeedsReorder() const { return plain != blocked; }
};

struct Plan {
  dnnl::primitive primitive;
  memory::desc scratchpad;
  Side written;
  Side read[2];
};

memory::desc PlainDesc(const memory::dims& dims) {
  memory::dims strides(dims.size());
  memory::dim stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return memory::desc(dims, memory::data_type::f32, strides);
}

memory::desc AnyDesc(const memory::desc& plain) {
  return memory::desc(plain.dims(), memory::data_type::f32, memory::format_tag::any);
}

struct Geometry {
  memory::desc x, w, y;
  memory::dims strides, dilates, padding_before, padding_after;
};

Geometry GeometryOf(const ConvolutionShape& shape) {
  const std::int64_t group_outputs = shape.output_channels / shape.groups;
  const std::int64_t group_inputs = shape.input_channels / shape.groups;
  memory::dims x = {shape.images, shape.input_channels};
  memory::dims y = {shape.images, shape.output_channels};
  memory::dims w = {group_outputs, group_inputs};
  if (shape.groups > 1) w.insert(w.begin(), shape.groups);
  Geometry geometry;
  for (int d = 0; d < shape.spatial_rank; ++d) {
    x.push_back(shape.input[d]);
    y.push_back(shape.output[d]);
    w.push_back(shape.kernel[d]);
    geometry.strides.push_back(shape.stride[d]);
    geometry.dilates.push_back(shape.dilation[d] - 1);
    geometry.padding_before.push_back(shape.padding[d]);
    geometry.padding_after.push_back(shape.padding[d]);
  }
  geometry.x = PlainDesc(x);
  geometry.w = PlainDesc(w);
  geometry.y = PlainDesc(y);
  return geometry;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::convolution_forward::primitive_desc ForwardDesc(const Geometry& g) {
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, AnyDesc(g.x),
      AnyDesc(g.w), AnyDesc(g.y), g.strides, g.dilates, g.padding_before, g.padding_after);
  return {desc, UserScratchpad(), Engine()};
}

void AddReorder(Side* side, bool is_written) {
  if (!side->NeedsReorder()) return;
  const memory::desc& from = is_written ? side->blocked : side->plain;
  const memory::desc& to = is_written ? side->plain : side->blocked;
  side->reorder =
      dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, UserScratchpad()));
}

Plan Finish(dnnl::primitive primitive, memory::desc scratchpad, Side written, Side read0,
            Side read1) {
  Plan plan = {std::move(primitive),
               std::move(scratchpad),
               std::move(written),
               {std::move(read0), std::move(read1)}};
  AddReorder(&plan.written, true);
  AddReorder(&plan.read[0], false);
  AddReorder(&plan.read[1], false);
  return plan;
}

Plan MakePlan(Direction direction, const ConvolutionShape& shape) {
  const Geometry g = GeometryOf(shape);
  const auto forward = ForwardDesc(g);
  if (direction == Direction::kForward) {
    return Finish(dnnl::convolution_forward(forward), forward.scratchpad_desc(),
                  {DNNL_ARG_DST, g.y, forward.dst_desc(), {}},
                  {DNNL_ARG_SRC, g.x, forward.src_desc(), {}},
                  {DNNL_ARG_WEIGHTS, g.w, forward.weights_desc(), {}});
  }
  if (direction == Direction::kBackwardData) {
    const dnnl::convolution_backward_data::desc desc(
        dnnl::algorithm::convolution_direct, AnyDesc(g.x), AnyDesc(g.w), AnyDesc(g.y), g.strides,
        g.dilates, g.padding_before, g.padding_after);
    const dnnl::convolution_backward_data::primitive_desc backward(desc, UserScratchpad(), Engine(),
                                                                   forward);
    return Finish(dnnl::convolution_backward_data(backward), backward.scratchpad_desc(),
                  {DNNL_ARG_DIFF_SRC, g.x, backward.diff_src_desc(), {}},
                  {DNNL_ARG_WEIGHTS, g.w, backward.weights_desc(), {}},
                  {DNNL_ARG_DIFF_DST, g.y, backward.diff_dst_desc(), {}});
  }
  const dnnl::convolution_backward_weights::desc desc(
      dnnl::algorithm::convolution_direct, AnyDesc(g.x), AnyDesc(g.w), AnyDesc(g.y), g.strides,
      g.dilates, g.padding_before, g.padding_after);
  const dnnl::convolution_backward_weights::primitive_desc backward(desc, UserScratchpad(),
                                                                    Engine(), forward);
  return Finish(dnnl::convolution_backward_weights(backward), backward.scratchpad_desc(),
                {DNNL_ARG_DIFF_WEIGHTS, g.w, backward.diff_weights_desc(), {}},
                {DNNL_ARG_SRC, g.x, backward.src_desc(), {}},
                {DNNL_ARG_DIFF_DST, g.y, backward.diff_dst_desc(), {}});
}

const Plan& PlanFor(Direction direction, const ConvolutionShape& shape) {
  static std::map<std::pair<Direction, ConvolutionShape>, Plan> plans;
  const auto key = std::make_pair(direction, shape);
  auto found = plans.find(key);
  if (found == plans.end()) found = plans.emplace(key, MakePlan(direction, shape)).first;
  return found->second;
}

std::int64_t Floats(const memory::desc& desc) {
  return static_cast<std::int64_t>((desc.get_size() + sizeof(float) - 1) / sizeof(float));
}

void Reorder(const Side& side, float* from, float* to, bool is_written, dnnl::stream& stream) {
  const memory source(is_written ? side.blocked : side.plain, Engine(), from);
  const memory target(is_written ? side.plain : side.blocked, Engine(), to);
  side.reorder->execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

void RunPlan(const Plan& plan, float* const (&read)[2], float* written) {
  static dnnl::stream stream(Engine());
  const Scratch scratchpad(Floats(plan.scratchpad));
  const Scratch blocked_read0(plan.read[0].NeedsReorder() ? Floats(plan.read[0].blocked) : 0);
  const Scratch blocked_read1(plan.read[1].NeedsReorder() ? Floats(plan.read[1].blocked) : 0);
  const Scratch blocked_written(plan.written.NeedsReorder() ? Floats(plan.written.blocked) : 0);
  float* const blocked[2] = {blocked_read0.data(), blocked_read1.data()};

  std::unordered_map<int, memory> arguments;
  for (int i = 0; i < 2; ++i) {
    const Side& side = plan.read[i];
    if (side.NeedsReorder()) Reorder(side, read[i], blocked[i], false, stream);
    arguments[side.argument] =
        memory(side.blocked, Engine(), side.NeedsReorder() ? blocked[i] : read[i]);
  }
  float* result = plan.written.NeedsReorder() ? blocked_written.data() : written;
  arguments[plan.written.argument] = memory(plan.written.blocked, Engine(), result);
  arguments[DNNL_ARG_SCRATCHPAD] = memory(plan.scratchpad, Engine(), scratchpad.data());
  plan.primitive.execute(stream, arguments);
  if (plan.written.NeedsReorder()) Reorder(plan.written, result, written, true, stream);
  stream.wait();
}

}  // namespace

void RunConvolution(Direction direction, const ConvolutionShape& shape,
                    const ConvolutionTensors& tensors) {
  const Plan& plan = PlanFor(direction, shape);
  switch (direction) {
    case Direction::kForward:
      return RunPlan(plan, {tensors.x, tensors.w}, tensors.y);
    case Direction::kBackwardData:
      return RunPlan(plan, {tensors.w, tensors.y}, tensors.x);
    case Direction::kBackwardFilter:
      return RunPlan(plan, {tensors.x, tensors.y}, tensors.w);
  }
}

void TurnFilter(const ConvolutionShape& shape, const float* from, float* to) {
  const std::int64_t pixels = shape.KernelPixels();
  for (std::int64_t plane = 0; plane < shape.FilterCount(); plane += pixels) {
    std::reverse_copy(from + plane, from + plane + pixels, to + plane);
  }
}

}  // namespace spillway::simulator::dnn
