// A graph of cuDNN operations: which memory its execution reads, overwrites or uses otherwise.
//
// Called from: BackendDescriptors, when the program finalizes a descriptor. Pure; values.
//
// Invariants
//  1. A tensor's part in an operation comes from backend_roles.inc, from beta, the norm's phase,
//     the statistics' mode and the pass. What is not understood has the role kUnknown.
//  2. A graph's buffer is only read if all operations read it. It is overwritten if one operation
//     makes it and no other names it. Everything else is kUnknown.
//  3. A graph that may write its results in part (lengths, ragged or dynamic shapes) overwrites
//     nothing. A graph with an operation that is not understood has no buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "interposer/dnn/backend_abi.h"
#include "interposer/dnn/tensor_extent.h"

namespace spillway::dnn {

enum class BufferRole : std::uint8_t { kReads, kOverwrites, kUnknown };

struct Tensor {
  std::int64_t uid = 0;
  TensorExtent extent;
  bool has_memory = true;  // neither virtual nor given by value
  bool is_ragged = false;
  bool holds_lengths = false;  // possibly: integers of 32 or 64 bits
};

struct TensorUse {
  Tensor tensor;
  BufferRole role;
};

struct Operation {
  std::vector<TensorUse> uses;
  bool may_write_in_part = false;
  bool is_understood = true;
};

struct Buffer {
  std::int64_t uid;
  std::size_t bytes;  // 0: unknown
  BufferRole role;
};

struct OperationGraph {
  std::vector<Buffer> buffers;  // by unique id, each at most once
};

// An attribute as the program set it: its elements, and the tensors that it names.
struct AttributeValue {
  AttributeType type;
  std::vector<std::byte> elements;
  std::vector<Tensor> tensors;
  bool names_unknown = false;  // a descriptor that nothing is known of

  std::optional<std::int64_t> Integer() const;  // the only element, of at most 8 bytes
  std::vector<std::int64_t> Integers() const;   // of kInt64
};

struct NamedAttribute {
  Attribute name;
  AttributeValue value;
};

// The attributes of one descriptor, each at most once.
using Attributes = std::vector<NamedAttribute>;

const AttributeValue* FindAttribute(const Attributes& attributes, Attribute name);

Tensor TensorOf(const Attributes& attributes);
Operation OperationOf(const Attributes& attributes);
OperationGraph GraphOf(std::span<const Operation> operations, bool is_dynamic);

}  // namespace spillway::dnn
