#include "simulator/dnn/graph/operation_graph.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "simulator/dnn/cudnn/descriptors.h"
#include "simulator/dnn/graph/lacking.h"

namespace spillway::simulator::dnn::graph {
namespace {

using Operations = std::vector<std::shared_ptr<const Operation>>;

bool Reads(const Operation& operation, std::int64_t uid) {
  return std::any_of(operation.uses.begin(), operation.uses.end(), [uid](const TensorUse& use) {
    return use.role == Role::kReads && use.tensor.uid == uid;
  });
}

// By the unique id of what they make. BAD_PARAM when a tensor has two.
cudnnStatus_t FindMakers(const Operations& operations,
                         std::map<std::int64_t, std::size_t>* makers) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    for (const TensorUse& use : operations[i]->uses) {
      if (use.role == Role::kReads) continue;
      const auto [maker, is_new] = makers->try_emplace(use.tensor.uid, i);
      SPILLWAY_DNN_REQUIRE(is_new || maker->second == i, CUDNN_STATUS_BAD_PARAM);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Order(Operations* operations) {
  std::map<std::int64_t, std::size_t> makers;
  const cudnnStatus_t status = FindMakers(*operations, &makers);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  Operations ordered;
  std::vector<bool> is_done(operations->size());
  const auto is_ready = [&](std::size_t i) {
    return std::all_of(
        (*operations)[i]->uses.begin(), (*operations)[i]->uses.end(), [&](const TensorUse& use) {
          const auto maker = makers.find(use.tensor.uid);
          return maker == makers.end() || maker->second == i || is_done[maker->second];
        });
  };
  while (ordered.size() < operations->size()) {
    std::size_t next = 0;
    while (next < operations->size() && (is_done[next] || !is_ready(next))) ++next;
    SPILLWAY_DNN_REQUIRE(next < operations->size(), CUDNN_STATUS_BAD_PARAM);  // a cycle
    is_done[next] = true;
    ordered.push_back((*operations)[next]);
  }
  *operations = std::move(ordered);
  return CUDNN_STATUS_SUCCESS;
}

Access AccessOf(const Operation& operation, const TensorUse& use) {
  if (use.role == Role::kReads) return Access::kRead;
  const bool keeps_bytes =
      use.role == Role::kUpdates || use.tensor.HasGaps() || Reads(operation, use.tensor.uid);
  return keeps_bytes ? Access::kUpdate : Access::kWrite;
}

Buffer BufferOf(const Operation& operation, const TensorUse& use) {
  const Tensor& tensor = use.tensor;
  return {tensor.uid, tensor.ExtentBytes(), AccessOf(operation, use), tensor.type,
          tensor.is_by_value};
}

// In order, so a tensor's maker is seen before its other readers.
void AddBuffers(const Operation& operation, std::vector<Buffer>* buffers) {
  for (const TensorUse& use : operation.uses) {
    if (use.tensor.is_virtual) continue;
    const Buffer buffer = BufferOf(operation, use);
    const auto known = std::find_if(buffers->begin(), buffers->end(),
                                    [&](const Buffer& b) { return b.uid == buffer.uid; });
    if (known == buffers->end()) {
      buffers->push_back(buffer);
    } else {
      known->size_bytes = std::max(known->size_bytes, buffer.size_bytes);
      if (known->access == Access::kRead) known->access = buffer.access;
    }
  }
}

std::uint64_t VirtualBytes(const Operations& operations) {
  std::uint64_t bytes = 0;
  for (const auto& operation : operations) {
    for (const TensorUse& use : operation->uses) {
      if (use.tensor.is_virtual && use.role != Role::kReads) bytes += use.tensor.DenseBytes();
    }
  }
  return bytes;
}

int CountOf(const Operations& operations, cudnnBackendDescriptorType_t kind) {
  return static_cast<int>(
      std::count_if(operations.begin(), operations.end(),
                    [kind](const auto& operation) { return operation->kind == kind; }));
}

// Attention's gradients come of five products, or of the one operation for them.
bool IsAttentionBackward(const Operations& operations) {
  constexpr int kProducts = 4;
  return CountOf(operations, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) >= kProducts ||
         CountOf(operations, CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR) > 0;
}

std::uint64_t AccumulatorBytes(const Operations& operations) {
  std::uint64_t most = 0;
  if (!IsAttentionBackward(operations)) return most;
  for (const auto& operation : operations) {
    for (const TensorUse& use : operation->uses) {
      if (use.tensor.is_virtual || use.role == Role::kReads) continue;
      most = std::max<std::uint64_t>(most, sizeof(float) * use.tensor.Count());
    }
  }
  return most;
}

Family FamilyOf(const Operations& operations) {
  const auto has = [&](cudnnBackendDescriptorType_t kind) { return CountOf(operations, kind) > 0; };
  if (has(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR))
    return Family::kConvolutionForward;
  if (has(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR))
    return Family::kConvolutionBackwardData;
  if (has(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR))
    return Family::kConvolutionBackwardFilter;
  const int products = CountOf(operations, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  if (products > 1 || has(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) ||
      has(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR))
    return Family::kAttention;
  if (products == 1 || has(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR))
    return Family::kMatmul;
  if (has(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR) ||
      has(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR) ||
      has(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR) ||
      has(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR))
    return Family::kNorm;
  return has(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) ? Family::kPointwise : Family::kOther;
}

bool HasRaggedTensors(const Operation& operation) {
  return std::any_of(operation.uses.begin(), operation.uses.end(),
                     [](const TensorUse& use) { return use.tensor.is_ragged; });
}

// Ids as ranks: a program may number the same graph's tensors anew.
std::uint64_t IdentityOf(const Operations& operations) {
  std::vector<std::uint64_t> words;
  std::map<std::int64_t, std::uint64_t> ranks;
  for (const auto& operation : operations) {
    words.push_back(operation->identity);
    for (const TensorUse& use : operation->uses)
      words.push_back(ranks.try_emplace(use.tensor.uid, ranks.size()).first->second);
  }
  return HashOf(words.data(), words.size() * sizeof(words[0]));
}

}  // namespace

const Convolution* OperationGraph::OnlyConvolution() const {
  const Convolution* only = nullptr;
  for (const auto& operation : operations) {
    if (!operation->convolution) continue;
    if (only != nullptr) return nullptr;
    only = &*operation->convolution;
  }
  return only;
}

bool OperationGraph::HasFloatInputs() const {
  return std::any_of(buffers.begin(), buffers.end(), [](const Buffer& buffer) {
    return buffer.access == Access::kRead && !buffer.is_by_value &&
           (buffer.type == CUDNN_DATA_FLOAT || buffer.type == CUDNN_DATA_DOUBLE);
  });
}

std::string OperationGraph::Label() const {
  constexpr std::string_view kPrefix = "OPERATION_";
  std::string label;
  for (const auto& operation : operations) {
    const std::string name(KindName(operation->kind).substr(kPrefix.size()));
    if (label.find(name) == std::string::npos) label += (label.empty() ? "" : ",") + name;
  }
  std::transform(label.begin(), label.end(), label.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return label;
}

cudnnStatus_t DescribeGraph(const State& state, OperationGraph* graph) {
  const Value* const parts = state.Find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  SPILLWAY_DNN_REQUIRE(parts != nullptr && parts->count > 0, CUDNN_STATUS_BAD_PARAM);
  for (const StatePointer& part : parts->parts) {
    if (HasRaggedTensors(*part->operation)) {
      SayNotSimulated("ragged_tensor");
      return Fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "ragged tensors are not simulated");
    }
    graph->operations.push_back(part->operation);
  }
  const cudnnStatus_t status = Order(&graph->operations);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  graph->flops = 0;
  for (const auto& operation : graph->operations) {
    AddBuffers(*operation, &graph->buffers);
    graph->flops += operation->flops;
  }
  graph->virtual_bytes = VirtualBytes(graph->operations);
  graph->accumulator_bytes = AccumulatorBytes(graph->operations);
  graph->identity = IdentityOf(graph->operations);
  graph->family = FamilyOf(graph->operations);
  graph->chain = ChainOf(*graph);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace spillway::simulator::dnn::graph
