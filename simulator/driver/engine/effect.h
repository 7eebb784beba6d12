// An operation's effect on memory at its end, and the faults that it meets.
#pragma once

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

class AddressSpace;

inline bool IsDead(const Operation& operation) {
  return operation.errors != nullptr && operation.errors->sticky != CUDA_SUCCESS;
}

// A fault breaks the operation's context; nothing is thrown.
void ApplyEffect(AddressSpace& addresses, Operation& operation);

}  // namespace spillway::simulator
