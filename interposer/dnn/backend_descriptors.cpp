#include "interposer/dnn/backend_descriptors.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spillway::dnn {
namespace {

using base::MutexLock;

// Bytes of an element; 0: not kept (texts, and types that are not known).
std::size_t BytesOf(AttributeType type) {
  switch (type) {
    case AttributeType::kCharacter:
      return 0;
    case AttributeType::kBoolean:
      return 1;
    case AttributeType::kHandle:
    case AttributeType::kInt64:
    case AttributeType::kDouble:
    case AttributeType::kVoidPointer:
    case AttributeType::kDescriptor:
      return 8;
    case AttributeType::kFraction:
      return 16;
    case AttributeType::kFloat:
    case AttributeType::kInt32:
    case AttributeType::kNumericalNote:
    case AttributeType::kLast:
      break;
  }
  return type <= AttributeType::kLast ? 4 : 0;
}

AttributeValue ValueOf(AttributeType type, std::int64_t count, const void* elements) {
  AttributeValue value{type, {}, {}};
  const auto* const first = static_cast<const std::byte*>(elements);
  if (count > 0 && elements)
    value.elements.assign(first, first + static_cast<std::size_t>(count) * BytesOf(type));
  return value;
}

std::vector<const void*> PointersIn(const AttributeValue& value) {
  std::vector<const void*> pointers(value.elements.size() / sizeof(void*));
  if (!pointers.empty())
    std::memcpy(pointers.data(), value.elements.data(), pointers.size() * sizeof(void*));
  return pointers;
}

void Replace(Attribute name, AttributeValue value, Attributes* attributes) {
  std::erase_if(*attributes, [name](const NamedAttribute& each) { return each.name == name; });
  attributes->push_back({name, std::move(value)});
}

bool LeadsToGraph(Attribute name) {
  return name == Attribute::kHeuristicsGraph || name == Attribute::kEngineGraph ||
         name == Attribute::kConfigurationEngine || name == Attribute::kPlanConfiguration;
}

// cuDNN may then use other shapes, run only some operations, or run those of a text.
bool DiffersFromGraph(const Attributes& plan, const Attributes& pack) {
  return FindAttribute(plan, Attribute::kPlanRunsOnly) ||
         FindAttribute(plan, Attribute::kPlanText) ||
         FindAttribute(pack, Attribute::kPackOverridingShapes) ||
         FindAttribute(pack, Attribute::kPackOverridingStrides);
}

CUdeviceptr AddressOf(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

void AddClaim(const Buffer& buffer, const void* pointer, interposer::Claims* claims) {
  switch (buffer.role) {
    case BufferRole::kReads:
      return buffer.bytes ? claims->Reads(AddressOf(pointer), buffer.bytes)
                          : claims->Touches(AddressOf(pointer));
    case BufferRole::kOverwrites:
      return claims->Overwrites(AddressOf(pointer), buffer.bytes);
    case BufferRole::kUnknown:
      return claims->Touches(AddressOf(pointer));
  }
}

void AddBufferClaims(const OperationGraph& graph, const Attributes& pack,
                     interposer::Claims* claims) {
  const AttributeValue* const ids = FindAttribute(pack, Attribute::kPackUniqueIds);
  const AttributeValue* const data = FindAttribute(pack, Attribute::kPackPointers);
  if (!ids || !data) return;
  const std::vector<std::int64_t> uids = ids->Integers();
  const std::vector<const void*> pointers = PointersIn(*data);
  for (const Buffer& buffer : graph.buffers) {
    // cuDNN accepts an id twice; which of the pointers it uses is undocumented.
    const bool is_unique = std::count(uids.begin(), uids.end(), buffer.uid) == 1;
    const Buffer known = is_unique ? buffer : Buffer{buffer.uid, 0, BufferRole::kUnknown};
    for (std::size_t i = 0; i < std::min(uids.size(), pointers.size()); ++i) {
      if (uids[i] == buffer.uid) AddClaim(known, pointers[i], claims);
    }
  }
}

void AddWorkspaceClaim(std::size_t bytes, const Attributes& pack, interposer::Claims* claims) {
  const AttributeValue* const workspace = FindAttribute(pack, Attribute::kPackWorkspace);
  if (!workspace) return;
  for (const void* const pointer : PointersIn(*workspace)) {
    bytes ? claims->Scratch(AddressOf(pointer), bytes) : claims->Touches(AddressOf(pointer));
  }
}

}  // namespace

BackendDescriptors& BackendDescriptors::Instance() {
  static BackendDescriptors* const descriptors = new BackendDescriptors;
  return *descriptors;
}

const BackendDescriptors::Descriptor* BackendDescriptors::Find(BackendDescriptor descriptor) const {
  const auto at = descriptors_.find(descriptor);
  return at == descriptors_.end() ? nullptr : &at->second;
}

BackendDescriptors::Descriptor* BackendDescriptors::Find(BackendDescriptor descriptor) {
  const auto at = descriptors_.find(descriptor);
  return at == descriptors_.end() ? nullptr : &at->second;
}

void BackendDescriptors::Created(BackendDescriptor descriptor, DescriptorKind kind) {
  const MutexLock lock(mutex_);
  Descriptor fresh;
  fresh.kind = kind;
  descriptors_[descriptor] = std::move(fresh);
}

void BackendDescriptors::Destroyed(BackendDescriptor descriptor) {
  const MutexLock lock(mutex_);
  descriptors_.erase(descriptor);
}

void BackendDescriptors::TakePart(BackendDescriptor part, Attribute name, Descriptor* whole,
                                  AttributeValue* value) {
  const Descriptor* const known = Find(part);
  if (!known) {
    value->names_unknown = true;
    if (name == Attribute::kGraphOperations) whole->operations.emplace_back().is_understood = false;
  } else if (known->kind == DescriptorKind::kTensor) {
    value->tensors.push_back(known->tensor);
  } else if (name == Attribute::kGraphOperations) {
    whole->operations.push_back(known->operation);
  } else if (LeadsToGraph(name)) {
    whole->graph = known->graph;
  }
}

void BackendDescriptors::Set(BackendDescriptor descriptor, Attribute name, AttributeType type,
                             std::int64_t count, const void* elements) {
  AttributeValue value = ValueOf(type, count, elements);
  const MutexLock lock(mutex_);
  Descriptor* const whole = Find(descriptor);
  if (!whole) return;
  if (name == Attribute::kGraphOperations) whole->operations.clear();
  if (name == Attribute::kPlanConfiguration) {
    whole->is_deterministic = false;
    whole->offer_kind.reset();
  }
  if (LeadsToGraph(name)) whole->graph = nullptr;
  if (type == AttributeType::kDescriptor) {
    for (const void* const part : PointersIn(value)) TakePart(part, name, whole, &value);
  }
  Replace(name, std::move(value), &whole->attributes);
}

void BackendDescriptors::Finalized(BackendDescriptor descriptor) {
  const MutexLock lock(mutex_);
  Descriptor* const whole = Find(descriptor);
  if (!whole) return;
  const Attributes& attributes = whole->attributes;
  switch (whole->kind) {
    case DescriptorKind::kTensor:
      whole->tensor = TensorOf(attributes);
      break;
    case DescriptorKind::kOperationGraph: {
      const AttributeValue* const dynamic = FindAttribute(attributes, Attribute::kGraphIsDynamic);
      const bool is_dynamic = dynamic && dynamic->Integer().value_or(1) != 0;
      whole->graph = std::make_shared<KnownGraph>(GraphOf(whole->operations, is_dynamic));
      break;
    }
    case DescriptorKind::kEngine:
    case DescriptorKind::kEngineConfiguration:
    case DescriptorKind::kExecutionPlan:
    case DescriptorKind::kVariantPack:
      break;
    default:
      whole->operation = OperationOf(attributes);
  }
}

bool BackendDescriptors::IsPlan(BackendDescriptor descriptor) const {
  const MutexLock lock(mutex_);
  const Descriptor* const known = Find(descriptor);
  return known && known->kind == DescriptorKind::kExecutionPlan;
}

void BackendDescriptors::SetWorkspaceBytes(BackendDescriptor plan, std::size_t bytes) {
  const MutexLock lock(mutex_);
  if (Descriptor* const known = Find(plan)) known->workspace_bytes = bytes;
}

void BackendDescriptors::MarkDeterministic(BackendDescriptor plan) {
  const MutexLock lock(mutex_);
  if (Descriptor* const known = Find(plan)) known->is_deterministic = true;
}

void BackendDescriptors::Filled(BackendDescriptor from, std::int64_t count,
                                const BackendDescriptor* into) {
  const MutexLock lock(mutex_);
  const Descriptor* const source = Find(from);
  const std::shared_ptr<KnownGraph> graph = source ? source->graph : nullptr;
  for (std::int64_t i = 0; i < count; ++i) {
    Descriptor* const filled = Find(into[i]);
    if (!filled) continue;
    const bool leads_to_graph = filled->kind == DescriptorKind::kEngine ||
                                filled->kind == DescriptorKind::kEngineConfiguration;
    // Of others only cuDNN knows the attributes now.
    leads_to_graph ? void(filled->graph = graph) : void(descriptors_.erase(into[i]));
  }
}

// Programs ask for the same lists again and again.
void BackendDescriptors::AddOffer(BackendDescriptor configuration, const WorkspaceOffer& offer) {
  const MutexLock lock(mutex_);
  const Descriptor* const known = Find(configuration);
  if (!known || !known->graph) return;
  std::vector<WorkspaceOffer>& offers = known->graph->offers;
  if (std::find(offers.begin(), offers.end(), offer) == offers.end()) offers.push_back(offer);
}

void BackendDescriptors::SetOfferKind(BackendDescriptor plan, std::uint64_t kind) {
  const MutexLock lock(mutex_);
  if (Descriptor* const known = Find(plan)) known->offer_kind = kind;
}

bool BackendDescriptors::IsHidden(BackendDescriptor plan, const WorkspaceBounds& bounds,
                                  BytesOf device_bytes_of, std::size_t* operand_bytes) const {
  const MutexLock lock(mutex_);
  const Descriptor* const known = Find(plan);
  if (!known || !known->graph || !known->offer_kind) return false;
  *operand_bytes = 0;
  for (const Buffer& buffer : known->graph->buffers)
    *operand_bytes += device_bytes_of(buffer.bytes);
  std::vector<WorkspaceOffer> offers = known->graph->offers;
  offers.push_back({device_bytes_of(known->workspace_bytes), *known->offer_kind});
  return HiddenOffers(offers, {*operand_bytes, bounds}).back();
}

void BackendDescriptors::AddClaims(BackendDescriptor plan, BackendDescriptor variant_pack,
                                   interposer::Claims* claims) const {
  const MutexLock lock(mutex_);
  const Descriptor* const known = Find(plan);
  const Descriptor* const pack = Find(variant_pack);
  if (!known || !known->graph || !pack || DiffersFromGraph(known->attributes, pack->attributes))
    return;
  AddBufferClaims(*known->graph, pack->attributes, claims);
  AddWorkspaceClaim(known->workspace_bytes, pack->attributes, claims);
  if (known->is_deterministic) claims->MarkRepeatable();
}

}  // namespace spillway::dnn
