// The descriptors of cuDNN's graph interface that the program has made, with what it set in them.
//
// Called from: the hooks of cuDNN's backend functions, after the real function has succeeded, on
// the program's threads. One for the process, never destroyed. Synchronises itself; its lock is a
// leaf.
//
// Invariants
//  1. Attributes are kept by value: a part may be destroyed once it was set (cuDNN keeps its own).
//  2. Heuristics, engines, configurations and plans have the graph of the part that was set in
//     them, or of the descriptor that filled them.
//  3. A descriptor that was not made here is unknown. An execution with an unknown plan or variant
//     pack, or with other shapes than the graph's, makes no claims.
// Never: calls cuDNN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "interposer/dnn/operation_graph.h"
#include "interposer/dnn/workspace_offers.h"
#include "interposer/ledger/claims.h"

namespace spillway::dnn {

using BackendDescriptor = const void*;

class BackendDescriptors {
 public:
  static BackendDescriptors& Instance();

  void Created(BackendDescriptor descriptor, DescriptorKind kind);
  // To be called before cuDNN's own: afterwards the address may be another descriptor's.
  void Destroyed(BackendDescriptor descriptor);
  // `elements`: `count` values of the type, as given to cudnnBackendSetAttribute.
  void Set(BackendDescriptor descriptor, Attribute name, AttributeType type, std::int64_t count,
           const void* elements);
  void Finalized(BackendDescriptor descriptor);
  bool IsPlan(BackendDescriptor descriptor) const;
  void SetWorkspaceBytes(BackendDescriptor plan, std::size_t bytes);
  // The engine has no CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: equal input gives equal output.
  void MarkDeterministic(BackendDescriptor plan);
  // cudnnBackendGetAttribute has filled the descriptors `into` with parts of `from`.
  void Filled(BackendDescriptor from, std::int64_t count, const BackendDescriptor* into);

  // The configuration is one of the ways to run its graph.
  void AddOffer(BackendDescriptor configuration, const WorkspaceOffer& offer);
  // Device memory of one operand of so many bytes.
  using BytesOf = std::size_t (*)(std::size_t bytes);
  // Of the plan's engine (WorkspaceOffer::kind). A plan without one is never hidden.
  void SetOfferKind(BackendDescriptor plan, std::uint64_t kind);
  // Whether the plan exceeds the room, and an offer of its kind does not. `operand_bytes`: what its
  // graph needs besides.
  bool IsHidden(BackendDescriptor plan, const WorkspaceBounds& bounds, BytesOf device_bytes_of,
                std::size_t* operand_bytes) const;

  void AddClaims(BackendDescriptor plan, BackendDescriptor variant_pack,
                 interposer::Claims* claims) const;

 private:
  struct KnownGraph : OperationGraph {
    explicit KnownGraph(OperationGraph graph) : OperationGraph(std::move(graph)) {}
    std::vector<WorkspaceOffer> offers;  // that heuristics have made
  };
  struct Descriptor {
    DescriptorKind kind = {};
    Attributes attributes = {};
    Tensor tensor = {};                      // of a finalized tensor
    Operation operation = {};                // of a finalized operation
    std::vector<Operation> operations = {};  // of a graph
    std::shared_ptr<KnownGraph> graph = {};
    std::size_t workspace_bytes = 0;               // of a plan
    bool is_deterministic = false;                 // of a plan
    std::optional<std::uint64_t> offer_kind = {};  // likewise
  };

  const Descriptor* Find(BackendDescriptor descriptor) const SPILLWAY_REQUIRES(mutex_);
  Descriptor* Find(BackendDescriptor descriptor) SPILLWAY_REQUIRES(mutex_);
  void TakePart(BackendDescriptor part, Attribute name, Descriptor* whole, AttributeValue* value)
      SPILLWAY_REQUIRES(mutex_);

  mutable base::Mutex mutex_{base::LockRank::kDescriptors};
  std::map<BackendDescriptor, Descriptor> descriptors_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::dnn
