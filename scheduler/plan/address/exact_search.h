// Finds a layout within a capacity, proves that there is none, or gives up at a node limit.
//
// Depth-first over *resting* layouts. Any layout can be lowered until every buffer rests on another
// or on offset zero. So placing buffers by offset, each on those below it, misses no solvable
// problem. Prunes by the floor and remaining size of each section of time, by gaps that another
// buffer would fit, and by states that failed before. Resting ("canonical") layouts, section
// inference and dominance are from Moffitt, "MiniMalloc" (ASPLOS 2023).
//
// Pure; any thread. Recursion is as deep as the number of buffers, hence kMostSearchedBuffers.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class SearchVerdict { kFound, kImpossible, kGaveUp };

struct SearchOptions {
  int64_t node_limit = 1'000'000;
};

struct SearchOutcome {
  SearchVerdict verdict = SearchVerdict::kGaveUp;
  Layout layout;  // complete if kFound
  int64_t nodes = 0;
};

inline constexpr size_t kMostSearchedBuffers = 4096;

// The problem must be well formed.
SearchOutcome SearchLayout(const Problem& problem, const SearchOptions& options);

}  // namespace spillway::scheduler::address
