// Places buffers one by one into the tightest or the lowest hole: fast, but not optimal. Pure.
//
// SmartPool (Zhang et al., section 3) colours a weighted interval graph, largest first, into the
// smallest hole that fits: that is {kBySize, kTightest} here.
#pragma once

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class PlacementOrder { kBySize, kByLifetime, kByArea, kByStart };
enum class HoleChoice { kTightest, kLowest };

// Ignores the capacity. The problem must be well formed, and its fixed buffers disjoint. O(n^2 log
// n) at worst.
Layout PlaceInOrder(const Problem& problem, PlacementOrder order, HoleChoice choice);

Layout PlaceLikeSmartpool(const Problem& problem);

}  // namespace spillway::scheduler::address
