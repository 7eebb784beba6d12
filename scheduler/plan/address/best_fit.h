// Placing buffers one after another, each into the tightest or the lowest hole: fast, good, not
// optimal.
//
// Called by the address planner, on any thread; pure and deterministic. SmartPool (Zhang et al.,
// section 3) colours a weighted interval graph, largest first, into the smallest hole that fits:
// that is {kBySize, kTightest} here.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class PlacementOrder { kBySize, kByLifetime, kByArea, kByStart };
enum class HoleChoice { kTightest, kLowest };

// Never fails: the capacity is not looked at, the caller compares the height. Buffers with a fixed
// offset are placed first; the problem must be well formed and its fixed buffers must not overlap
// each other. O(n^2 log n) at worst.
Layout PlaceInOrder(const Problem& problem, PlacementOrder order, HoleChoice choice);

// SmartPool's heuristic.
Layout PlaceLikeSmartpool(const Problem& problem);

}  // namespace spillway::scheduler::address
