// What each kind of backend descriptor may hold.
//
// Invariants
//  1. attributes.inc is the only list: types, counts and the roles of tensors come from it.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::simulator::dnn::graph {

enum class Role : std::uint8_t {
  kSetting,
  kReads,
  kWrites,
  kUpdates,
  kReadsOrWrites,  // read by a norm's inference phase, written by its training phase
  kAnswer,         // cannot be set
};

struct Attribute {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t name;
  std::uint32_t types;  // a bit per cudnnBackendAttributeType_t
  bool is_list;
  Role role;
  int part;  // the kind of its descriptors; -1: no descriptors, -2: any operation

  bool Takes(cudnnBackendAttributeType_t type) const { return (types >> type & 1u) != 0; }
};

inline constexpr int kNoPart = -1;
inline constexpr int kAnyOperation = -2;

std::span<const Attribute> AttributesOf(cudnnBackendDescriptorType_t kind);

const Attribute* FindAttribute(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name);

bool IsOperation(cudnnBackendDescriptorType_t kind);

std::string_view KindName(cudnnBackendDescriptorType_t kind);

std::size_t TypeBytes(cudnnBackendAttributeType_t type);

}  // namespace spillway::simulator::dnn::graph
