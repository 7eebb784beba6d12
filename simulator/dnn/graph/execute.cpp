#include <algorithm>
#include <array>
#include <stdexcept>

#include "simulator/dnn/common/workspace.h"
#include "simulator/dnn/cudnn/descriptors.h"
#include "simulator/dnn/graph/plan.h"

namespace spillway::simulator::dnn::graph {
namespace {

constexpr const char* NameOf(Family family) {
  switch (family) {
    case Family::kConvolutionForward:
      return "cudnn_graph_convolution_forward";
    case Family::kConvolutionBackwardData:
      return "cudnn_graph_convolution_backward_data";
    case Family::kConvolutionBackwardFilter:
      return "cudnn_graph_convolution_backward_filter";
    case Family::kAttention:
      return "cudnn_graph_attention";
    case Family::kMatmul:
      return "cudnn_graph_matmul";
    case Family::kNorm:
      return "cudnn_graph_norm";
    case Family::kPointwise:
      return "cudnn_graph_pointwise";
    case Family::kOther:
      break;
  }
  return "cudnn_graph";
}

template <Family kFamily>
struct ComputedGraph {
  static constexpr const char* kName = NameOf(kFamily);
  static constexpr int kOperands = Chain::kMostTensors + 1;
  std::uint64_t plan_identity;
  std::uint64_t workspace_bytes;
  Chain chain;

  void Run(void* const* operands) const {
    MarkWorkspace(operands[kOperands - 1], workspace_bytes);
    chain.Run(operands);
  }
};

template <Family kFamily, int kCount>
struct TaggedGraph {
  static constexpr const char* kName = NameOf(kFamily);
  static constexpr int kOperands = kCount;
  std::uint64_t plan_identity;
  std::uint64_t workspace_bytes;

  // A plan made of its text may have been written by a process that wrote tags.
  void Run(void* const*) const { throw std::runtime_error("this graph only writes tags"); }
};

struct Launch {
  std::array<Operand, Plan::kMostBuffers> operands = {};
  Operand workspace = {};
  std::uint64_t identity = 0;  // the plan's, with the values of tensors by value
  std::optional<Chain> chain;
};

const void* PointerOf(const State& pack, std::int64_t uid) {
  const std::vector<std::int64_t> uids = pack.Integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto found = std::find(uids.begin(), uids.end(), uid);
  if (found == uids.end()) return nullptr;
  const Value& pointers = *pack.Find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const void* pointer = nullptr;
  std::memcpy(&pointer, pointers.bytes.data() + (found - uids.begin()) * sizeof(pointer),
              sizeof(pointer));
  return pointer;
}

Operand OperandOf(const Buffer& buffer, const void* pointer) {
  return {pointer, buffer.size_bytes, buffer.access};
}

// A tensor by value is the host's memory, read now.
cudnnStatus_t TakeValue(std::size_t index, const Buffer& buffer, const void* value,
                        Launch* launch) {
  const std::uint64_t words[] = {launch->identity, HashOf(value, buffer.size_bytes)};
  launch->identity = HashOf(words, sizeof(words));
  for (int i = 0; launch->chain && i < launch->chain->tensor_count; ++i) {
    ChainTensor& tensor = launch->chain->tensors[i];
    if (tensor.is_by_value && tensor.operand == static_cast<int>(index))
      ConvertToFloat(tensor.view.type, value, 1, 1, &tensor.value);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Bind(const Plan& plan, const State& pack, Launch* launch) {
  launch->identity = plan.identity;
  launch->chain = plan.chain;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    const void* const pointer = PointerOf(pack, buffer.uid);
    SPILLWAY_DNN_REQUIRE(pointer != nullptr || buffer.size_bytes == 0,
                         CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    if (buffer.is_by_value) {
      TakeValue(i, buffer, pointer, launch);
    } else {
      launch->operands[i] = OperandOf(buffer, pointer);
    }
  }
  const std::uint64_t workspace_bytes = plan.engine.workspace_bytes;
  if (workspace_bytes == 0) return CUDNN_STATUS_SUCCESS;
  auto* const workspace = pack.Get<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  SPILLWAY_DNN_REQUIRE(workspace != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  launch->workspace = Writes(workspace, workspace_bytes);
  return CUDNN_STATUS_SUCCESS;
}

template <typename Op>
cudnnStatus_t EnqueueAs(cudnnHandle_t handle, const Plan& plan, const Launch& launch,
                        const Op& operation) {
  std::array<Operand, Op::kOperands> operands = {};
  std::copy_n(launch.operands.begin(), Op::kOperands - 1, operands.begin());
  operands.back() = launch.workspace;
  const double extra_passes = std::max(0.0, plan.engine.workspace_passes - 1);
  return FromDriver(Enqueue(StreamOf(handle), operation, operands, plan.engine.effective_flops,
                            extra_passes * static_cast<double>(plan.engine.workspace_bytes)));
}

template <Family kFamily>
cudnnStatus_t EnqueueFamily(cudnnHandle_t handle, const Plan& plan, const Launch& launch) {
  constexpr int kFew = 12;
  const std::uint64_t workspace_bytes = plan.engine.workspace_bytes;
  if (launch.chain) {
    return EnqueueAs(handle, plan, launch,
                     ComputedGraph<kFamily>{launch.identity, workspace_bytes, *launch.chain});
  }
  if (plan.buffers.size() < kFew) {
    return EnqueueAs(handle, plan, launch,
                     TaggedGraph<kFamily, kFew>{launch.identity, workspace_bytes});
  }
  return EnqueueAs(handle, plan, launch,
                   TaggedGraph<kFamily, Plan::kMostBuffers + 1>{launch.identity, workspace_bytes});
}

}  // namespace

cudnnStatus_t Execute(cudnnHandle_t handle, const Plan& plan, const State& variant_pack) {
  Launch launch;
  const cudnnStatus_t status = Bind(plan, variant_pack, &launch);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  switch (plan.family) {
    case Family::kConvolutionForward:
      return EnqueueFamily<Family::kConvolutionForward>(handle, plan, launch);
    case Family::kConvolutionBackwardData:
      return EnqueueFamily<Family::kConvolutionBackwardData>(handle, plan, launch);
    case Family::kConvolutionBackwardFilter:
      return EnqueueFamily<Family::kConvolutionBackwardFilter>(handle, plan, launch);
    case Family::kAttention:
      return EnqueueFamily<Family::kAttention>(handle, plan, launch);
    case Family::kMatmul:
      return EnqueueFamily<Family::kMatmul>(handle, plan, launch);
    case Family::kNorm:
      return EnqueueFamily<Family::kNorm>(handle, plan, launch);
    case Family::kPointwise:
      return EnqueueFamily<Family::kPointwise>(handle, plan, launch);
    case Family::kOther:
      break;
  }
  return EnqueueFamily<Family::kOther>(handle, plan, launch);
}

}  // namespace spillway::simulator::dnn::graph
