// The assumed memory use of a kernel without a body and without a rule: it reads and writes all
// that it names, each allocation whole.
//
// Pure. Its identity covers the launch's shape, scalars of two to eight bytes, and the place of
// each word within its allocation. Unused bytes of structs hold anything, so there only named
// memory counts.
//
// Invariants
//  1. Words of structs beyond 128 bytes do not count. Such structs hold tables, whose unused
//     entries are stale: they would make a program's output depend on the run.
//  2. So the memory of such a table is not read, and keeps its old content.
#pragma once

#include "simulator/driver/device/declared_uses.h"

namespace spillway::simulator {

// Each allocation once, in the order of the parameters.
KernelEffect AssumeUses(const DeclaredKernel::Launch& launch);

}  // namespace spillway::simulator
