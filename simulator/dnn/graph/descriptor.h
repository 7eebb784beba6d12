// A backend descriptor: a kind, its attributes, and whether it is finalized.
//
// A descriptor belongs to one thread at a time. A handle is a Descriptor; its State is shared with
// the descriptors that it became part of.
//
// Invariants
//  1. A finalized State never changes.
//  2. A part that was not finalized when it was set never will be, so its owner cannot be
//     finalized.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "simulator/dnn/graph/attributes.h"

namespace spillway::simulator::dnn::graph {

struct Engine;
struct Operation;
struct OperationGraph;
struct Plan;
struct State;
using StatePointer = std::shared_ptr<const State>;

struct Value {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<std::byte> bytes;
  std::vector<StatePointer> parts;  // of a value of descriptors, which then has no bytes
};

struct State {
  cudnnBackendDescriptorType_t kind;
  bool is_finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values;

  std::shared_ptr<const Operation> operation;  // of an operation
  std::shared_ptr<const OperationGraph> graph;
  std::shared_ptr<const Engine> engine;  // of an engine and its configuration
  std::shared_ptr<const Plan> plan;

  const Value* Find(cudnnBackendAttributeName_t name) const;
  const State* Part(cudnnBackendAttributeName_t name) const;
  std::vector<std::int64_t> Integers(cudnnBackendAttributeName_t name) const;
  double Number(cudnnBackendAttributeName_t name, double otherwise) const;
  template <typename T>
  T Get(cudnnBackendAttributeName_t name, T otherwise) const;

  template <typename T>
  void Answer(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
              std::span<const T> elements);
  template <typename T>
  void Answer(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T element) {
    Answer(name, type, std::span<const T>(&element, 1));
  }
};

struct Descriptor {
  std::shared_ptr<State> state;
};

std::shared_ptr<State> NewState(cudnnBackendDescriptorType_t kind);

cudnnStatus_t SetAttribute(Descriptor& descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count,
                           const void* elements);
cudnnStatus_t GetAttribute(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t requested,
                           std::int64_t* count, void* elements);

template <typename T>
T State::Get(cudnnBackendAttributeName_t name, T otherwise) const {
  const Value* const value = Find(name);
  if (value == nullptr || value->bytes.size() < sizeof(T)) return otherwise;
  T result;
  std::memcpy(&result, value->bytes.data(), sizeof(T));
  return result;
}

template <typename T>
void State::Answer(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::span<const T> elements) {
  const auto bytes = std::as_bytes(elements);
  values[name] = {
      type, static_cast<std::int64_t>(elements.size()), {bytes.begin(), bytes.end()}, {}};
}

}  // namespace spillway::simulator::dnn::graph
