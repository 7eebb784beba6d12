#include "simulator/driver/engine/operation.h"

#include <algorithm>

namespace spillway::simulator {

std::uintptr_t Operation::UsedAddressIn(const Range& range) const {
  for (const Extent& extent : extents) {
    if (extent.base < range.base + range.size_bytes &&
        range.base < extent.base + extent.size_bytes) {
      return std::max(range.base, extent.base);
    }
  }
  return 0;
}

bool Operation::HasWordIn(const Range& range) const {
  return std::any_of(words.begin(), words.end(),
                     [&](std::uint64_t word) { return range.Contains(word); });
}

bool Operation::IsSuspect(std::uintptr_t address) const {
  return std::any_of(suspects.begin(), suspects.end(),
                     [&](const Range& range) { return range.Contains(address); });
}

void Operation::AddSuspect(const Range& range) {
  // The same range may be unmapped many times while an operation waits.
  if (std::find(suspects.begin(), suspects.end(), range) == suspects.end())
    suspects.push_back(range);
}

}  // namespace spillway::simulator
