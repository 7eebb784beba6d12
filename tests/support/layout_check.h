// The slow, obvious validator of layouts: compares every pair and shares no code with the planners.
#pragma once

#include <cstddef>
#include <optional>

#include "scheduler/plan/address/layout.h"

namespace spillway::scheduler::address {

enum class LayoutFault { kMissingOffset, kOutOfBounds, kMisaligned, kMovedFixedBuffer, kOverlap };

struct LayoutOffence {
  LayoutFault fault = LayoutFault::kMissingOffset;
  size_t buffer = 0;
  size_t other = 0;  // the overlapping buffer; otherwise equal to `buffer`

  bool operator==(const LayoutOffence&) const = default;
};

// The first offence in the buffers' order. O(n^2).
std::optional<LayoutOffence> CheckLayout(const Problem& problem, const Layout& layout);

}  // namespace spillway::scheduler::address
