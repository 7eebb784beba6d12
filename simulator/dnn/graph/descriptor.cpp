#include "simulator/dnn/graph/descriptor.h"

#include <algorithm>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn::graph {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of a plan's text

cudnnStatus_t CheckCount(const Attribute& attribute, std::int64_t count) {
  if (!attribute.is_list) {
    SPILLWAY_DNN_REQUIRE(count == 1, CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  }
  const bool may_be_empty = attribute.part != kNoPart;
  SPILLWAY_DNN_REQUIRE(count >= (may_be_empty ? 0 : 1) && count <= kMostElements,
                       CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// Operations must be finalized when they join a graph; other parts when their owner is finalized.
cudnnStatus_t CheckPart(const Attribute& attribute, const State& part) {
  if (attribute.part == kAnyOperation) {
    SPILLWAY_DNN_REQUIRE(IsOperation(part.kind), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    SPILLWAY_DNN_REQUIRE(part.is_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    return CUDNN_STATUS_SUCCESS;
  }
  SPILLWAY_DNN_REQUIRE(part.kind == attribute.part, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CopyParts(const Attribute& attribute, std::int64_t count, const void* elements,
                        Value* value) {
  const auto* const parts = static_cast<Descriptor* const*>(elements);
  for (std::int64_t i = 0; i < count; ++i) {
    SPILLWAY_DNN_REQUIRE(parts[i] != nullptr, CUDNN_STATUS_BAD_PARAM);
    const std::shared_ptr<State>& state = parts[i]->state;
    const cudnnStatus_t status = CheckPart(attribute, *state);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    value->parts.push_back(state->is_finalized ? state : std::make_shared<State>(*state));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GiveParts(const Value& value, std::int64_t count, void* elements) {
  auto* const parts = static_cast<Descriptor**>(elements);
  for (std::int64_t i = 0; i < count; ++i) {
    SPILLWAY_DNN_REQUIRE(parts[i] != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    SPILLWAY_DNN_REQUIRE(parts[i]->state->kind == value.parts[i]->kind,
                         CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    parts[i]->state = std::const_pointer_cast<State>(value.parts[i]);  // finalized: never changed
  }
  return CUDNN_STATUS_SUCCESS;
}

void SetDefaults(State& tensor) {
  tensor.Answer(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false);
  tensor.Answer(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false);
  tensor.Answer(CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, std::int64_t{1});
  tensor.Answer(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, CUDNN_TYPE_INT64, std::int64_t{-1});
  tensor.Answer(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE,
                CUDNN_TENSOR_REORDERING_NONE);
}

}  // namespace

const Value* State::Find(cudnnBackendAttributeName_t name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

const State* State::Part(cudnnBackendAttributeName_t name) const {
  const Value* const value = Find(name);
  return value == nullptr || value->parts.empty() ? nullptr : value->parts.front().get();
}

std::vector<std::int64_t> State::Integers(cudnnBackendAttributeName_t name) const {
  const Value* const value = Find(name);
  if (value == nullptr || value->type != CUDNN_TYPE_INT64) return {};
  std::vector<std::int64_t> result(value->count);
  std::memcpy(result.data(), value->bytes.data(), value->bytes.size());
  return result;
}

double State::Number(cudnnBackendAttributeName_t name, double otherwise) const {
  const Value* const value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->type == CUDNN_TYPE_FLOAT) return Get<float>(name, 0);
  if (value->type == CUDNN_TYPE_INT32) return Get<std::int32_t>(name, 0);
  return Get<double>(name, otherwise);
}

std::shared_ptr<State> NewState(cudnnBackendDescriptorType_t kind) {
  auto state = std::make_shared<State>();
  state->kind = kind;
  if (kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR) SetDefaults(*state);
  return state;
}

cudnnStatus_t SetAttribute(Descriptor& descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count,
                           const void* elements) {
  State& state = *descriptor.state;
  SPILLWAY_DNN_REQUIRE(!state.is_finalized, CUDNN_STATUS_BAD_PARAM);
  const Attribute* const attribute = FindAttribute(state.kind, name);
  SPILLWAY_DNN_REQUIRE(attribute != nullptr, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(attribute->role != Role::kAnswer, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(attribute->Takes(type), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  cudnnStatus_t status = CheckCount(*attribute, count);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  SPILLWAY_DNN_REQUIRE(elements != nullptr || count == 0, CUDNN_STATUS_BAD_PARAM);

  Value value = {type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    status = CopyParts(*attribute, count, elements, &value);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  } else {
    const auto* const bytes = static_cast<const std::byte*>(elements);
    value.bytes.assign(bytes, bytes + count * TypeBytes(type));
  }
  state.values[name] = std::move(value);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetAttribute(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t requested,
                           std::int64_t* count, void* elements) {
  const State& state = *descriptor.state;
  SPILLWAY_DNN_REQUIRE(state.is_finalized, CUDNN_STATUS_NOT_INITIALIZED);
  const Attribute* const attribute = FindAttribute(state.kind, name);
  SPILLWAY_DNN_REQUIRE(attribute != nullptr, CUDNN_STATUS_BAD_PARAM);
  const Value* const value = state.Find(name);
  SPILLWAY_DNN_REQUIRE(value != nullptr ? value->type == type : attribute->Takes(type),
                       CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  SPILLWAY_DNN_REQUIRE(elements == nullptr || requested >= 0, CUDNN_STATUS_BAD_PARAM);

  const std::int64_t present = value != nullptr ? value->count : 0;
  const bool only_counts = elements == nullptr || requested == 0;
  const std::int64_t given = only_counts ? present : std::min(requested, present);
  if (count != nullptr) *count = given;
  if (only_counts || given == 0) return CUDNN_STATUS_SUCCESS;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return GiveParts(*value, given, elements);
  std::memcpy(elements, value->bytes.data(), given * TypeBytes(type));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace spillway::simulator::dnn::graph
