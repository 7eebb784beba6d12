// How much memory a program is told to be free. (docs/decisions/0010-what-free-memory-means.md)
//
// Called by JobView. Pure.
//
// A program's device has as many bytes as its budget, and it can be given more, kept on the host.
// Free memory is exact while no more than half of the budget is used. From there on it falls in
// proportion to what can still be given, and reaches nothing when that does.
//
// Invariants
//  1. An allocation of what is free is granted.
//  2. It is never more than the budget, and nothing only where nothing more would be granted.
//  3. Each allocation makes it less, each free more.
#pragma once

#include <algorithm>
#include <cstddef>

namespace spillway::interposer {

struct GivenMemory {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;
  std::size_t most_bytes =
      0;  // that allocations can be given in all; the budget where nothing may leave it
  std::size_t largest_bytes = 0;  // that one more allocation can be given
};

inline std::size_t FreeMemoryOf(const GivenMemory& given) {
  const std::size_t half_bytes = given.budget_bytes / 2;
  const std::size_t unused_bytes =
      given.budget_bytes - std::min(given.budget_bytes, given.used_bytes);
  if (unused_bytes >= half_bytes || given.most_bytes <= given.budget_bytes) return unused_bytes;
  const std::size_t rest_bytes = given.most_bytes - std::min(given.most_bytes, given.used_bytes);
  const double share =
      static_cast<double>(rest_bytes) / static_cast<double>(given.most_bytes - half_bytes);
  const auto in_proportion = static_cast<std::size_t>(static_cast<double>(half_bytes) * share);
  return std::min(std::max(unused_bytes, in_proportion),
                  std::max(unused_bytes, given.largest_bytes));
}

}  // namespace spillway::interposer
