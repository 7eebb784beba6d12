// An allocation that is larger than the budget, cut into parts that move by themselves.
// (Note [Arenas] in execute/arenas.h)
#pragma once

#include <vector>

#include "interposer/ledger/allocation.h"
#include "interposer/ledger/arena_cuts.h"

namespace spillway::interposer {

struct Range;

// As an allocation, it is what the program knows.
struct Arena : Allocation {
  Arena(CUdeviceptr base, size_t bytes, size_t part_bytes) : cuts(base, bytes, part_bytes) {
    this->base = base;
    requested_bytes = bytes;
  }
  ArenaCuts cuts;
  std::vector<Range*> parts;  // one behind another, without a gap
};

}  // namespace spillway::interposer
