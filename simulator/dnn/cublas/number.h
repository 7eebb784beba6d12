// Numbers of cuBLAS' element types, and scalars in host or device memory.
#pragma once

#include <library_types.h>

#include <cstdlib>

#include "simulator/dnn/common/operation.h"

namespace spillway::simulator::dnn {

enum class Number : std::int32_t { kFloat, kDouble, kHalf, kBfloat16, kUnsupported };
Number NumberOf(cudaDataType_t type);
std::int64_t NumberBytes(Number number);
double ReadNumber(Number number, const void* from);
void WriteNumber(Number number, double value, void* to);

template <typename Real>
inline constexpr Number kNumberOf = sizeof(Real) == sizeof(double) ? Number::kDouble
                                                                   : Number::kFloat;

// From the first to the last of n elements, `step` apart; a negative step begins at the end.
inline std::uint64_t VectorBytes(std::int64_t n, std::int64_t step, std::size_t element_bytes) {
  return n <= 0 ? 0 : ((n - 1) * std::abs(step) + 1) * element_bytes;
}

struct Scalar {
  Number number;
  std::int32_t on_device;
  double value;

  double Get(const void* operand) const { return on_device ? ReadNumber(number, operand) : value; }
};

inline Scalar ScalarArgument(bool on_device, Number number, const void* given) {
  return {number, on_device, on_device ? 0 : ReadNumber(number, given)};
}

inline Operand ScalarOperand(const Scalar& scalar, const void* given) {
  return Reads(scalar.on_device ? given : nullptr, NumberBytes(scalar.number));
}

// Then the scaled operand is not read either.
inline bool IsKnownZero(const Scalar& scalar) { return !scalar.on_device && scalar.value == 0; }

inline Operand ScaledOutput(const Scalar& beta, void* pointer, std::uint64_t size_bytes) {
  return IsKnownZero(beta) ? Writes(pointer, size_bytes) : Updates(pointer, size_bytes);
}

}  // namespace spillway::simulator::dnn
