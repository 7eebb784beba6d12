// Bodies of graphs whose nodes share memory: one's kernel uses what another copies, sets or brings
// from the host, and several use the whole of it.
//
// Used by features/graphs.cpp on the generator's thread. Plain values, the caller's.
#pragma once

#include <vector>

#include "tests/fuzz/differential/feature.h"

namespace spillway::fuzz {

// Two bodies of the same shape over the same buffers, in other roles; empty without memory for
// them.
struct SharedBodies {
  std::vector<Operation> first, second;
};
SharedBodies ProposeSharedBodies(Proposer& proposer);

// Kernels write to much memory, for which what a graph names may have to leave.
void UseLargeMemory(Proposer& proposer);

}  // namespace spillway::fuzz
