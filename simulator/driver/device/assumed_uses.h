// The assumed memory use of a kernel without a body and without a rule: it reads and writes all
// that it names, each allocation whole.
//
// Pure. Its identity covers the launch's shape, scalars of two to eight bytes, and the place of
// each word within its allocation. Larger parameters are structs: their unused bytes hold anything,
// so only the memory that they name counts.
//
// Invariants
//  1. Words of structs beyond 128 bytes do not count. Such structs hold tables, and the unused
//     entries of a table are stale: they may name memory that the kernel never touches, and other
//     memory in the next run. What they say would make a program's output depend on the run.
//  2. So the memory of such a table is neither read nor written, and what the kernel should have
//     written there keeps its old content.
#pragma once

#include "simulator/driver/device/declared_uses.h"

namespace spillway::simulator {

// Each allocation once, in the order of the parameters.
KernelEffect AssumeUses(const DeclaredKernel::Launch& launch);

}  // namespace spillway::simulator
