// Finds a layout within a capacity, or proves that there is none, or gives up at a node limit.
//
// Depth-first over *resting* layouts: any layout can be let down until every buffer rests on
// another or on offset zero, so placing buffers in order of their offsets, each on what is already
// below it, misses no solvable problem. What cuts the tree: the floors and remaining sizes of each
// moment in time, gaps that another buffer would have fitted into, parts of time that no waiting
// buffer connects any more and that are solved alone, and states seen to fail before. The ideas of
// resting ("canonical") layouts, section inference and dominance are those of Moffitt, "MiniMalloc"
// (ASPLOS 2023).
//
// Called by the address planner, on any thread; pure: equal problem and options give equal layouts.
// Bounded by nodes, never by time. Recursion is as deep as there are buffers, which is why
// kMostBuffers exists.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class SearchVerdict { kFound, kImpossible, kGaveUp };

struct SearchOptions {
  int64_t node_limit = 1'000'000;
};

struct SearchOutcome {
  SearchVerdict verdict = SearchVerdict::kGaveUp;
  Layout layout;  // complete when kFound
  int64_t nodes = 0;
};

inline constexpr size_t kMostSearchedBuffers = 4096;

// The problem must be well formed. More than kMostSearchedBuffers buffers is kGaveUp at once.
SearchOutcome SearchLayout(const Problem& problem, const SearchOptions& options);

}  // namespace spillway::scheduler::address
