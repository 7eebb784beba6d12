#include "interposer/execute/call_roles.h"

#include <algorithm>

namespace spillway::interposer {

// A call that follows stored addresses may reach the memory it names. Its claims prove nothing.
void AssignRoles(const Addresses& addresses, TouchSet* set) {
  if (set->reaches || set->claims->empty()) return;
  const size_t first = set->at_once ? 1 : 0;  // the first range stands for all memory
  const size_t named = set->at_once ? set->ranges.size() : set->named;
  set->roles.clear();
  for (size_t i = 0; i < named; ++i) {
    set->roles.push_back(
        i < first ? Role::kReadsAndWrites
                  : set->claims->RoleOf(*set->ranges[i], {addresses.begin(), addresses.size()}));
  }
}

Role RoleOf(const TouchSet& set, const Range* range) {
  const auto at = std::find(set.ranges.begin(), set.ranges.end(), range);
  return RoleAt(set, static_cast<size_t>(at - set.ranges.begin()));
}

bool AnyEmpty(const TouchSet& set) {
  return std::any_of(set.ranges.begin(), set.ranges.end(),
                     [](const Range* range) { return range->empty; });
}

}  // namespace spillway::interposer
