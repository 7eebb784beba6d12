// Attributes of cuDNN's graph interface as literals, for tests of interposer/dnn.
#pragma once

#include <initializer_list>
#include <ostream>
#include <span>
#include <vector>

#include "interposer/dnn/operation_graph.h"

namespace spillway::dnn {

// The attributes of backend_roles.inc: CONVOLUTION_FORWARD_X and so on.
enum TensorAttribute : int {
#define SPILLWAY_TENSOR(attribute, number, role) attribute = number,
#include "interposer/dnn/backend_roles.inc"
#undef SPILLWAY_TENSOR
};

template <class Element>
AttributeValue ValueOf(AttributeType type, std::initializer_list<Element> elements) {
  const auto bytes = std::as_bytes(std::span(elements.begin(), elements.size()));
  return {type, {bytes.begin(), bytes.end()}, {}};
}
inline AttributeValue Integers(std::initializer_list<std::int64_t> values) {
  return ValueOf(AttributeType::kInt64, values);
}
inline AttributeValue Float(float value) { return ValueOf(AttributeType::kFloat, {value}); }
inline AttributeValue Double(double value) { return ValueOf(AttributeType::kDouble, {value}); }
inline AttributeValue Flag(bool value) { return ValueOf(AttributeType::kBoolean, {value}); }
// Any enumeration: cudnnDataType_t, cudnnBackendNormFwdPhase_t and so on.
inline AttributeValue Enumerator(int value) { return ValueOf(AttributeType::kLast, {value}); }

inline void PrintTo(BufferRole role, std::ostream* out) {
  *out << (role == BufferRole::kReads        ? "reads"
           : role == BufferRole::kOverwrites ? "overwrites"
                                             : "unknown");
}

}  // namespace spillway::dnn
