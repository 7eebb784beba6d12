// Atomic operations: ordinary reads and writes, because one GPU thread runs at a time.
//
// Other host threads can see intermediate states.
#pragma once

#include <cstring>

#include "simulator/kernels/device/standard.h"

namespace spillway::simulator::device {

template <typename T, typename Change>
static inline T ReadAndChange(T* address, Change change) {
  const T old = *address;
  *address = change(old);
  return old;
}

}  // namespace spillway::simulator::device

#define SPILLWAY_ATOMIC(name, expression)                                                         \
  template <typename T>                                                                           \
  static inline T name(T* address, spillway::simulator::device::NotDeduced<T> operand) {          \
    return spillway::simulator::device::ReadAndChange(                                            \
        address, [&]([[maybe_unused]] const T& old) -> T { return static_cast<T>(expression); }); \
  }
#define SPILLWAY_ATOMIC_SCOPES(name, expression) \
  SPILLWAY_ATOMIC(name, expression)              \
  SPILLWAY_ATOMIC(name##_block, expression)      \
  SPILLWAY_ATOMIC(name##_system, expression)

SPILLWAY_ATOMIC_SCOPES(atomicAdd, old + operand)
SPILLWAY_ATOMIC_SCOPES(atomicSub, old - operand)
SPILLWAY_ATOMIC_SCOPES(atomicExch, operand)
SPILLWAY_ATOMIC_SCOPES(atomicMax, old < operand ? operand : old)
SPILLWAY_ATOMIC_SCOPES(atomicMin, operand < old ? operand : old)
SPILLWAY_ATOMIC_SCOPES(atomicAnd, old& operand)
SPILLWAY_ATOMIC_SCOPES(atomicOr, old | operand)
SPILLWAY_ATOMIC_SCOPES(atomicXor, old ^ operand)
SPILLWAY_ATOMIC_SCOPES(atomicInc, old >= operand ? T{0} : old + 1)
SPILLWAY_ATOMIC_SCOPES(atomicDec, old == 0 || old > operand ? operand : old - 1)
#undef SPILLWAY_ATOMIC_SCOPES
#undef SPILLWAY_ATOMIC

template <typename T>
static inline T atomicCAS(T* address, spillway::simulator::device::NotDeduced<T> expected,
                          spillway::simulator::device::NotDeduced<T> desired) {
  return spillway::simulator::device::ReadAndChange(address, [&](const T& old) {
    return std::memcmp(&old, &expected, sizeof old) == 0 ? desired : old;
  });
}
template <typename T>
static inline T atomicCAS_block(T* address, spillway::simulator::device::NotDeduced<T> expected,
                                spillway::simulator::device::NotDeduced<T> desired) {
  return atomicCAS(address, expected, desired);
}
template <typename T>
static inline T atomicCAS_system(T* address, spillway::simulator::device::NotDeduced<T> expected,
                                 spillway::simulator::device::NotDeduced<T> desired) {
  return atomicCAS(address, expected, desired);
}
