// How much free memory a program is shown. (docs/decisions/0010-what-free-memory-means.md)
//
// A program's device has as many bytes as its budget. The program can be given more, kept on the
// host. Free memory is exact while at most half of the budget is used. Beyond that it falls in
// proportion to what can still be given, and both reach zero together. Memory that cannot leave the
// device counts as taken from the budget: its owner, who asks for more of it, would get no more.
//
// Invariants
//  1. An allocation as large as the free memory is granted, also one that cannot leave.
//  2. It is never more than the budget, and zero only where nothing more would be granted or where
//     unmovable memory fills the budget.
//  3. Each allocation lowers it, each free raises it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace spillway::interposer {

struct GivenMemory {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;
  std::size_t unmovable_bytes = 0;  // of them
  std::size_t most_bytes =
      0;  // for all allocations together; the budget where nothing may be evicted
  std::size_t largest_bytes = 0;  // of one more allocation
};

// What is given of the device without its unmovable memory.
inline GivenMemory WithoutUnmovable(GivenMemory given) {
  for (std::size_t* const bytes : {&given.budget_bytes, &given.used_bytes, &given.most_bytes})
    *bytes -= std::min(*bytes, given.unmovable_bytes);
  given.unmovable_bytes = 0;
  return given;
}

inline std::size_t FreeMemoryOf(const GivenMemory& of_device) {
  const GivenMemory given = WithoutUnmovable(of_device);
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
