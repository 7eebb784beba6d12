// cuDNN's graph (backend) interface.
//
// A plan's execution names its memory by unique ids in a variant pack. What the plan does to each
// was said long before, in the descriptors of its graph. These hooks note the descriptors
// (dnn/backend_descriptors.h) after cuDNN has accepted them. Only the execution makes claims.
// cuDNN's own descriptors, made inside its calls, are not noted.
#include <algorithm>

#include "interposer/dnn/backend_descriptors.h"
#include "interposer/entry/dnn_call.h"

using spillway::dnn::Attribute;
using spillway::dnn::AttributeType;
using spillway::dnn::BackendDescriptors;
using spillway::dnn::Descriptor;
using spillway::dnn::DescriptorKind;
using spillway::dnn::Handle;
using spillway::entry::RealDnn;

namespace spillway::entry {
namespace {

constexpr dnn::Status kSucceeded = 0;

bool IsNoted(dnn::Status status) {
  return status == kSucceeded && !library_call && !ForwardsEverything();
}

struct Library {
  explicit Library(const void* function)
      : create(reinterpret_cast<decltype(create)>(
            DnnSibling(function, "cudnnBackendCreateDescriptor"))),
        destroy(reinterpret_cast<decltype(destroy)>(
            DnnSibling(function, "cudnnBackendDestroyDescriptor"))),
        get(reinterpret_cast<decltype(get)>(DnnSibling(function, "cudnnBackendGetAttribute"))) {}

  decltype(cudnnBackendCreateDescriptor)* create;
  decltype(cudnnBackendDestroyDescriptor)* destroy;
  decltype(cudnnBackendGetAttribute)* get;
};

// "CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE", of a finalized plan. 0: unknown, or none is needed.
std::size_t WorkspaceBytesOf(Descriptor plan, const Library& library) {
  int64_t bytes = 0, count = 0;
  const bool is_known =
      library.get &&
      library.get(plan, static_cast<int>(Attribute::kPlanWorkspaceBytes),
                  static_cast<int>(AttributeType::kInt64), 1, &count, &bytes) == kSucceeded;
  return is_known && count == 1 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

// An engine without notes is deterministic; one whose notes cannot be read may not be.
bool IsDeterministic(Descriptor engine, const Library& library) {
  int notes[dnn::kMostNotes];
  int64_t count = -1;
  const auto status =
      library.get(engine, static_cast<int>(Attribute::kEngineNumericalNote),
                  static_cast<int>(AttributeType::kNumericalNote), dnn::kMostNotes, &count, notes);
  return status == kSucceeded && count >= 0 && count <= dnn::kMostNotes &&
         std::find(notes, notes + count, dnn::kNondeterministic) == notes + count;
}

// Asks the configuration's engine, as cuDNN's documentation shows: it fills a descriptor of ours.
bool HasDeterministicEngine(Descriptor configuration, const Library& library) {
  if (!library.create || !library.destroy || !library.get) return false;
  Descriptor engine = nullptr;
  if (library.create(static_cast<int>(DescriptorKind::kEngine), &engine) != kSucceeded)
    return false;
  int64_t count = 0;
  const auto status = library.get(configuration, static_cast<int>(Attribute::kConfigurationEngine),
                                  static_cast<int>(AttributeType::kDescriptor), 1, &count, &engine);
  const bool is_deterministic = status == kSucceeded && IsDeterministic(engine, library);
  library.destroy(engine);
  return is_deterministic;
}

void NoteSet(Descriptor descriptor, Attribute name, AttributeType type, int64_t count,
             const void* elements, const void* library_function) {
  BackendDescriptors& descriptors = BackendDescriptors::Instance();
  descriptors.Set(descriptor, name, type, count, elements);
  if (name != Attribute::kPlanConfiguration || count != 1) return;
  if (HasDeterministicEngine(*static_cast<const Descriptor*>(elements), Library(library_function)))
    descriptors.MarkDeterministic(descriptor);
}

void NoteFinalized(Descriptor descriptor, const void* library_function) {
  BackendDescriptors& descriptors = BackendDescriptors::Instance();
  descriptors.Finalized(descriptor);
  if (descriptors.IsPlan(descriptor))
    descriptors.SetWorkspaceBytes(descriptor,
                                  WorkspaceBytesOf(descriptor, Library(library_function)));
}

}  // namespace
}  // namespace spillway::entry

#define SPILLWAY_REAL_DNN(name)                                            \
  auto* const real = RealDnn(&::name, #name, __builtin_return_address(0)); \
  if (!real) return ::spillway::dnn::kNotInitialized

SPILLWAY_DNN_FUNCTION cudnnBackendCreateDescriptor(int kind, Descriptor* descriptor) {
  SPILLWAY_REAL_DNN(cudnnBackendCreateDescriptor);
  const auto status = real(kind, descriptor);
  if (spillway::entry::IsNoted(status))
    BackendDescriptors::Instance().Created(*descriptor, static_cast<DescriptorKind>(kind));
  return status;
}

SPILLWAY_DNN_FUNCTION cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  SPILLWAY_REAL_DNN(cudnnBackendDestroyDescriptor);
  BackendDescriptors::Instance().Destroyed(descriptor);
  return real(descriptor);
}

SPILLWAY_DNN_FUNCTION cudnnBackendSetAttribute(Descriptor descriptor, int name, int type,
                                               int64_t count, const void* elements) {
  SPILLWAY_REAL_DNN(cudnnBackendSetAttribute);
  const auto status = real(descriptor, name, type, count, elements);
  if (spillway::entry::IsNoted(status))
    spillway::entry::NoteSet(descriptor, static_cast<Attribute>(name),
                             static_cast<AttributeType>(type), count, elements,
                             reinterpret_cast<const void*>(real));
  return status;
}

SPILLWAY_DNN_FUNCTION cudnnBackendGetAttribute(Descriptor descriptor, int name, int type,
                                               int64_t requested, int64_t* count, void* elements) {
  SPILLWAY_REAL_DNN(cudnnBackendGetAttribute);
  const auto status = real(descriptor, name, type, requested, count, elements);
  if (elements && static_cast<AttributeType>(type) == AttributeType::kDescriptor &&
      spillway::entry::IsNoted(status))
    BackendDescriptors::Instance().Filled(descriptor, requested,
                                          static_cast<const Descriptor*>(elements));
  return status;
}

SPILLWAY_DNN_FUNCTION cudnnBackendFinalize(Descriptor descriptor) {
  SPILLWAY_REAL_DNN(cudnnBackendFinalize);
  const auto status = real(descriptor);
  if (spillway::entry::IsNoted(status))
    spillway::entry::NoteFinalized(descriptor, reinterpret_cast<const void*>(real));
  return status;
}

SPILLWAY_DNN_HOOK(cudnnBackendExecute, (Handle handle, Descriptor plan, Descriptor variant_pack),
                  (handle, plan, variant_pack), call.Executes(plan, variant_pack))
