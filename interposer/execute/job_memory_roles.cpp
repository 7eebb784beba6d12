// What a call promises of the memory that it names. (Note [Roles] in ledger/claims.h)
#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// Another thread's call is about to overwrite some of it: its stream may be this one's, so what was there, or what comes, would
// be right, but neither is there yet. Only who makes memory resident empties any, so none is emptied meanwhile.
void JobMemory::AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set) {
  waits_.AwaitProgress([&]() SPILLWAY_REQUIRES(kStateLock) {
    Find(addresses, effect, set);
    return !AnyEmpty(*set);
  });
}

// The call is not made after all: what it would have overwritten is as it was. The stream is not ordered behind that copy.
void JobMemory::FillWhatIsEmpty(const TouchSet& set) {
  const driver::CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    if (RoleAt(set, i) == Role::kOverwrites) state_.residency.Fill(set.ranges[i]);
  }
}

}  // namespace spillway::interposer
