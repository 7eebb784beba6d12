// The slow, obvious judge of a layout: compares every pair, shares no code with the planners.
//
// Called by tests, benches and the plan validator, on any thread. Never repairs anything.
#pragma once

#include <cstddef>
#include <optional>

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class LayoutFault { kMissingOffset, kOutOfBounds, kMisaligned, kMovedFixedBuffer, kOverlap };

struct LayoutOffence {
  LayoutFault fault = LayoutFault::kMissingOffset;
  size_t buffer = 0;
  size_t other = 0;  // the second buffer of an overlap; otherwise the same as `buffer`

  bool operator==(const LayoutOffence&) const = default;
};

// The first offence in the buffers' order, or nothing when the layout is valid. O(n^2).
std::optional<LayoutOffence> CheckLayout(const Problem& problem, const Layout& layout);

}  // namespace spillway::scheduler::address
