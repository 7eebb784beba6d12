// What a call promises of the memory that it names. (Note [Roles] in ledger/claims.h)
#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// What a call may reach by addresses in memory may be what it names.
void JobMemory::AssignRoles(const Addresses& addresses, TouchSet* set) {
  if (set->reaches || set->claims->empty()) return;
  const size_t first = set->at_once ? 1 : 0;  // the first stands for everything
  const size_t named = set->at_once ? set->ranges.size() : set->named;
  set->roles.clear();
  for (size_t i = 0; i < named; ++i) {
    set->roles.push_back(i < first
                             ? Role::kReadsAndWrites
                             : set->claims->RoleOf(*set->ranges[i], {addresses.begin(), addresses.size()}));
  }
}

Role JobMemory::RoleOf(const TouchSet& set, const Range* range) {
  const auto at = std::find(set.ranges.begin(), set.ranges.end(), range);
  return RoleAt(set, static_cast<size_t>(at - set.ranges.begin()));
}

bool JobMemory::AnyEmpty(const TouchSet& set) {
  return std::any_of(set.ranges.begin(), set.ranges.end(), [](const Range* range) { return range->empty; });
}

// Another thread's call is about to overwrite some of it: its stream may be this one's, so what was there, or what comes, would
// be right, but neither is there yet. Only who makes memory resident empties any, so none is emptied meanwhile.
void JobMemory::AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set) {
  AwaitProgress([&]() SPILLWAY_REQUIRES(state_) {
    Find(addresses, effect, set);
    return !AnyEmpty(*set);
  });
}

// The call is not made after all: what it would have overwritten is as it was. The stream is not ordered behind that copy.
void JobMemory::FillWhatIsEmpty(const TouchSet& set) {
  const driver::CurrentContext current(context_);
  const base::MutexLock lock(state_);
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    if (RoleAt(set, i) == Role::kOverwrites) residency_.Fill(set.ranges[i]);
  }
}

}  // namespace spillway::interposer
