// cuDNN's graph (backend) interface.
//
// A plan's execution names its memory by unique ids in a variant pack. What the plan does to each
// was said long before, in the descriptors of its graph. These hooks note the descriptors
// (dnn/backend_descriptors.h) after cuDNN has accepted them. Only the execution makes claims.
// cuDNN's own descriptors, made inside its calls, are not noted.
#include <stdio.h>

#include <algorithm>
#include <optional>
#include <span>

#include "interposer/dnn/backend_descriptors.h"
#include "interposer/dnn/other_algorithms.h"
#include "interposer/entry/dnn_call.h"
#include "interposer/entry/workspace_room.h"

using spillway::dnn::Attribute;
using spillway::dnn::AttributeType;
using spillway::dnn::BackendDescriptors;
using spillway::dnn::Descriptor;
using spillway::dnn::DescriptorKind;
using spillway::dnn::Handle;
using spillway::entry::RealDnn;

namespace spillway::entry {
namespace {

using dnn::kSucceeded;

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

// A bit per numerical note. Nothing where the engine's notes cannot be read.
std::optional<std::uint64_t> NotesOfEngine(Descriptor engine, const Library& library) {
  int notes[dnn::kMostNotes];
  int64_t count = -1;
  const auto status =
      library.get(engine, static_cast<int>(Attribute::kEngineNumericalNote),
                  static_cast<int>(AttributeType::kNumericalNote), dnn::kMostNotes, &count, notes);
  if (status != kSucceeded || count < 0 || count > dnn::kMostNotes) return std::nullopt;
  std::uint64_t bits = 0;
  for (const int note : std::span(notes, static_cast<std::size_t>(count)))
    bits |= note >= 0 && note < 64 ? std::uint64_t{1} << note : 0;
  return bits;
}

// Asks the configuration's engine, as cuDNN's documentation shows: it fills a descriptor of ours.
std::optional<std::uint64_t> NotesOf(Descriptor configuration, const Library& library) {
  if (!library.create || !library.destroy || !library.get) return std::nullopt;
  Descriptor engine = nullptr;
  if (library.create(static_cast<int>(DescriptorKind::kEngine), &engine) != kSucceeded)
    return std::nullopt;
  int64_t count = 0;
  const auto status = library.get(configuration, static_cast<int>(Attribute::kConfigurationEngine),
                                  static_cast<int>(AttributeType::kDescriptor), 1, &count, &engine);
  const auto notes = status == kSucceeded ? NotesOfEngine(engine, library) : std::nullopt;
  library.destroy(engine);
  return notes;
}

// What programs insist on: determinism, and how numbers are rounded.
std::uint64_t KindOf(std::uint64_t notes) {
  constexpr std::uint64_t kOne = 1;
  return notes & (kOne << dnn::kTensorCore | kOne << dnn::kDownConvertInputs |
                  kOne << dnn::kReducedPrecisionReduction | kOne << dnn::kNondeterministic);
}

// Of the configurations that heuristics have filled in.
void NoteOffers(int64_t count, const Descriptor* configurations, const Library& library) {
  for (const Descriptor configuration :
       std::span(configurations, static_cast<std::size_t>(count))) {
    int64_t bytes = -1, given = 0;
    const auto status =
        library.get(configuration, static_cast<int>(Attribute::kConfigurationWorkspaceBytes),
                    static_cast<int>(AttributeType::kInt64), 1, &given, &bytes);
    const auto notes = NotesOf(configuration, library);
    if (status != kSucceeded || given != 1 || bytes < 0 || !notes) continue;
    BackendDescriptors::Instance().AddOffer(
        configuration, {DeviceBytesOf(static_cast<std::size_t>(bytes)), KindOf(*notes)});
  }
}

void NoteFilled(Descriptor from, Attribute name, int64_t requested, const int64_t* count,
                const Descriptor* into, const void* library_function) {
  BackendDescriptors::Instance().Filled(from, requested, into);
  if (name == Attribute::kHeuristicsResults && count && BoundsOfWorkspaces())
    NoteOffers(std::clamp<int64_t>(*count, 0, requested), into, Library(library_function));
}

// CUDNN_STATUS_NOT_SUPPORTED has another number since cuDNN 9.
dnn::Status NotSupported(const void* library_function) {
  const auto version =
      reinterpret_cast<std::size_t (*)()>(DnnSibling(library_function, "cudnnGetVersion"));
  return version && version() < 90000 ? 9 : 3000;
}

// A plan that cannot run within the budget, while another could, is refused like one that the
// library does not support: programs then try the next one.
bool IsRefused(Descriptor plan, std::size_t workspace_bytes) {
  const auto bounds = BoundsOfWorkspaces();
  if (!bounds) return false;
  std::size_t operand_bytes = 0;
  if (!BackendDescriptors::Instance().IsHidden(plan, *bounds, DeviceBytesOf, &operand_bytes))
    return false;
  dnn::OtherAlgorithm other{
      .operation = {}, .first_choice_bytes = workspace_bytes, .offered_bytes = 0};
  snprintf(other.operation, sizeof other.operation,
           "graph with %zu MiB of tensors, a plan with %zu MiB", operand_bytes >> 20,
           workspace_bytes >> 20);
  dnn::NoteOtherAlgorithm(other);
  return true;
}

void NoteSet(Descriptor descriptor, Attribute name, AttributeType type, int64_t count,
             const void* elements, const void* library_function) {
  BackendDescriptors& descriptors = BackendDescriptors::Instance();
  descriptors.Set(descriptor, name, type, count, elements);
  if (name != Attribute::kPlanConfiguration || count != 1) return;
  const auto notes = NotesOf(*static_cast<const Descriptor*>(elements), Library(library_function));
  if (!notes) return;
  if (!(*notes >> dnn::kNondeterministic & 1)) descriptors.MarkDeterministic(descriptor);
  descriptors.SetOfferKind(descriptor, KindOf(*notes));
}

// The program's answer.
dnn::Status NoteFinalized(Descriptor descriptor, const void* library_function) {
  BackendDescriptors& descriptors = BackendDescriptors::Instance();
  descriptors.Finalized(descriptor);
  if (!descriptors.IsPlan(descriptor)) return kSucceeded;
  const std::size_t bytes = WorkspaceBytesOf(descriptor, Library(library_function));
  descriptors.SetWorkspaceBytes(descriptor, bytes);
  return IsRefused(descriptor, bytes) ? NotSupported(library_function) : kSucceeded;
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
    spillway::entry::NoteFilled(descriptor, static_cast<Attribute>(name), requested, count,
                                static_cast<const Descriptor*>(elements),
                                reinterpret_cast<const void*>(real));
  return status;
}

SPILLWAY_DNN_FUNCTION cudnnBackendFinalize(Descriptor descriptor) {
  SPILLWAY_REAL_DNN(cudnnBackendFinalize);
  const auto status = real(descriptor);
  if (spillway::entry::IsNoted(status))
    return spillway::entry::NoteFinalized(descriptor, reinterpret_cast<const void*>(real));
  return status;
}

SPILLWAY_DNN_HOOK(cudnnBackendExecute, (Handle handle, Descriptor plan, Descriptor variant_pack),
                  (handle, plan, variant_pack), call.Executes(plan, variant_pack))
