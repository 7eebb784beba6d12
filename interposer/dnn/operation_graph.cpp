#include "interposer/dnn/operation_graph.h"

#include <algorithm>
#include <cstring>

namespace spillway::dnn {
namespace {

enum class TensorPart : std::uint8_t {
  kReads,
  kSeeds,
  kSelects,
  kWrites,
  kReadsOrWrites,
  kTrains,
  kResult,
  kUnknown,
};

TensorPart PartOf(Attribute name) {
  switch (static_cast<int>(name)) {
#define SPILLWAY_TENSOR(attribute, number, role) \
  case number:                                   \
    return TensorPart::k##role;
#include "interposer/dnn/backend_roles.inc"
#undef SPILLWAY_TENSOR
    default:
      return TensorPart::kUnknown;
  }
}

// What decides the part that a tensor's role leaves open.
struct Pass {
  bool blends;       // results are added to old ones
  bool is_training;  // of a norm, or of its statistics
  bool is_backward;  // of a pointwise operation
};

// True unless the scaling factor is +0. Unset means 0 (cuDNN 9.19).
bool Blends(const Attributes& attributes) {
  for (const Attribute name :
       {Attribute::kConvolutionForwardBeta, Attribute::kConvolutionBackwardDataBeta,
        Attribute::kConvolutionBackwardFilterBeta, Attribute::kResampleForwardBeta}) {
    const AttributeValue* const beta = FindAttribute(attributes, name);
    if (beta && std::any_of(beta->elements.begin(), beta->elements.end(),
                            [](std::byte each) { return each != std::byte{0}; }))
      return true;
  }
  return false;
}

// An input joins the concatenation where it lies: the result's memory holds it before.
bool IsInPlace(const Attributes& attributes) {
  return FindAttribute(attributes, Attribute::kConcatenationInPlace) != nullptr;
}

// The phase's default is inference. Statistics have a mode instead, which numbers training 0.
bool IsTraining(const Attributes& attributes) {
  if (const AttributeValue* const mode = FindAttribute(attributes, Attribute::kStatisticsMode))
    return mode->Integer() == kStatisticsTraining;
  const AttributeValue* const phase = FindAttribute(attributes, Attribute::kNormPhase);
  return phase && phase->Integer().value_or(kNormInference) != kNormInference;
}

Pass PassOf(const Attributes& attributes) {
  return {Blends(attributes) || IsInPlace(attributes), IsTraining(attributes),
          FindAttribute(attributes, Attribute::kPointwiseDx) != nullptr};
}

BufferRole RoleOf(TensorPart part, const Pass& pass) {
  const BufferRole written = pass.blends ? BufferRole::kUnknown : BufferRole::kOverwrites;
  switch (part) {
    case TensorPart::kReads:
    case TensorPart::kSeeds:
    case TensorPart::kSelects:
      return BufferRole::kReads;
    case TensorPart::kWrites:
      return written;
    case TensorPart::kReadsOrWrites:
      return pass.is_training ? written : BufferRole::kReads;
    case TensorPart::kTrains:
      return pass.is_training ? written : BufferRole::kUnknown;
    case TensorPart::kResult:
      return pass.is_backward ? BufferRole::kReads : written;
    case TensorPart::kUnknown:
      break;
  }
  return BufferRole::kUnknown;
}

// A tensor in an unknown part may hold lengths, too: results that follow are then written in part.
bool MakesPartial(TensorPart part, const Tensor& tensor) {
  const bool may_select = part == TensorPart::kReads || part == TensorPart::kUnknown;
  return tensor.is_ragged || part == TensorPart::kSelects || (may_select && tensor.holds_lengths);
}

bool Is(const Attributes& attributes, Attribute name) {
  const AttributeValue* const value = FindAttribute(attributes, name);
  return value && value->Integer().value_or(1) != 0;
}

std::int64_t IntegerOr(const Attributes& attributes, Attribute name, std::int64_t otherwise) {
  const AttributeValue* const value = FindAttribute(attributes, name);
  return value ? value->Integer().value_or(otherwise) : otherwise;
}

// Vectorized and reordered elements lie in an order, and with padding, that strides do not tell.
bool IsPlain(const Attributes& attributes) {
  return IntegerOr(attributes, Attribute::kTensorVectorCount, 1) == 1 &&
         IntegerOr(attributes, Attribute::kTensorReordering, 0) == 0;
}

TensorExtent ExtentOf(const Attributes& attributes) {
  const AttributeValue* const sizes = FindAttribute(attributes, Attribute::kTensorDimensions);
  const AttributeValue* const strides = FindAttribute(attributes, Attribute::kTensorStrides);
  if (!sizes || !strides || !IsPlain(attributes)) return {};
  const std::vector<std::int64_t> size = sizes->Integers(), stride = strides->Integers();
  if (size.size() != stride.size()) return {};
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < size.size(); ++i) dimensions.push_back({size[i], stride[i]});
  const auto type = static_cast<int>(IntegerOr(attributes, Attribute::kTensorDataType, -1));
  return ExtentOf(type, dimensions);
}

// A second operation on the buffer: whichever runs first, both only read it, or nothing is known.
void Merge(Buffer* buffer, std::size_t bytes, BufferRole role) {
  const bool both_read = buffer->role == BufferRole::kReads && role == BufferRole::kReads;
  if (!both_read || buffer->bytes != bytes) *buffer = {buffer->uid, 0, BufferRole::kUnknown};
}

void Add(const TensorUse& use, bool may_write_in_part, std::vector<Buffer>* buffers) {
  const Tensor& tensor = use.tensor;
  if (!tensor.has_memory) return;
  const bool is_whole = tensor.extent.bytes > 0 && tensor.extent.leaves_no_gap;
  const bool is_known =
      use.role == BufferRole::kReads || (use.role == BufferRole::kOverwrites && is_whole);
  const BufferRole role = is_known && !(use.role == BufferRole::kOverwrites && may_write_in_part)
                              ? use.role
                              : BufferRole::kUnknown;
  const auto found = std::find_if(buffers->begin(), buffers->end(),
                                  [&tensor](const Buffer& each) { return each.uid == tensor.uid; });
  if (found != buffers->end()) return Merge(&*found, tensor.extent.bytes, role);
  buffers->push_back({tensor.uid, tensor.extent.bytes, role});
}

}  // namespace

std::vector<std::int64_t> AttributeValue::Integers() const {
  if (type != AttributeType::kInt64) return {};
  std::vector<std::int64_t> values(elements.size() / sizeof(std::int64_t));
  if (!values.empty())
    std::memcpy(values.data(), elements.data(), values.size() * sizeof(std::int64_t));
  return values;
}

std::optional<std::int64_t> AttributeValue::Integer() const {
  if (elements.empty() || elements.size() > sizeof(std::int64_t)) return {};
  std::int64_t value = 0;  // none of the enumerations has negative values
  std::memcpy(&value, elements.data(), elements.size());
  return value;
}

const AttributeValue* FindAttribute(const Attributes& attributes, Attribute name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [name](const NamedAttribute& each) { return each.name == name; });
  return found == attributes.end() ? nullptr : &found->value;
}

Tensor TensorOf(const Attributes& attributes) {
  Tensor tensor;
  tensor.uid = IntegerOr(attributes, Attribute::kTensorUniqueId, 0);
  tensor.extent = ExtentOf(attributes);
  tensor.has_memory =
      !Is(attributes, Attribute::kTensorIsVirtual) && !Is(attributes, Attribute::kTensorIsByValue);
  tensor.is_ragged = FindAttribute(attributes, Attribute::kTensorRaggedOffset) != nullptr;
  const std::int64_t type = IntegerOr(attributes, Attribute::kTensorDataType, -1);
  tensor.holds_lengths = type == kInt32 || type == kInt64 || type == kUint32;
  return tensor;
}

Operation OperationOf(const Attributes& attributes) {
  Operation operation;
  const Pass pass = PassOf(attributes);
  for (const auto& [name, value] : attributes) {
    const TensorPart part = PartOf(name);
    operation.is_understood &= !value.names_unknown;
    for (const Tensor& tensor : value.tensors) {
      operation.uses.push_back({tensor, RoleOf(part, pass)});
      operation.may_write_in_part |= MakesPartial(part, tensor);
    }
  }
  return operation;
}

OperationGraph GraphOf(std::span<const Operation> operations, bool is_dynamic) {
  if (!std::all_of(operations.begin(), operations.end(),
                   [](const Operation& each) { return each.is_understood; }))
    return {};
  const bool may_write_in_part =
      is_dynamic || std::any_of(operations.begin(), operations.end(),
                                [](const Operation& each) { return each.may_write_in_part; });
  OperationGraph graph;
  for (const Operation& operation : operations) {
    for (const TensorUse& use : operation.uses) Add(use, may_write_in_part, &graph.buffers);
  }
  return graph;
}

}  // namespace spillway::dnn
