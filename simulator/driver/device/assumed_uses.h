// The assumed memory use of a kernel without a body and without a rule: it reads and writes all
// that it names, each allocation whole.
//
// Pure. Its identity covers the launch's shape, scalars up to eight bytes, and the place of each
// word within its allocation. Larger parameters are structs: their unused bytes hold anything, so
// only the memory that they name counts.
#pragma once

#include "simulator/driver/device/declared_uses.h"

namespace spillway::simulator {

// Each allocation once, in the order of the parameters.
KernelEffect AssumeUses(const DeclaredKernel::Launch& launch);

}  // namespace spillway::simulator
