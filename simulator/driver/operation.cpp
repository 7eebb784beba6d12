#include "simulator/driver/operation.h"

#include <algorithm>

namespace spillway::simulator {

std::uintptr_t Operation::UsedAddressIn(std::uintptr_t base, std::size_t size_bytes) const {
  for (const Extent& extent : extents) {
    if (extent.base < base + size_bytes && base < extent.base + extent.size_bytes) {
      return std::max(base, extent.base);
    }
  }
  for (const std::uint64_t word : words) {
    if (word - base < size_bytes) return word;
  }
  return 0;
}

}  // namespace spillway::simulator
