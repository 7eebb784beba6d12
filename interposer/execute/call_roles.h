// What a call promises about the memory that it names. (Note [Roles] in ledger/claims.h)
#pragma once

#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

inline Role RoleAt(const TouchSet& set, size_t index) {
  return index < set.roles.size() ? set.roles[index] : Role::kReadsAndWrites;
}
inline bool MayWrite(const TouchSet& set, size_t index, Effect effect) {
  return effect != Effect::kReads && RoleAt(set, index) != Role::kReads;
}
Role RoleOf(const TouchSet& set, const Range* range);
// The same for what must not depend on experiments: learned claims promise nothing.
inline Role PromisedRoleAt(const TouchSet& set, size_t index) {
  return set.learned ? Role::kReadsAndWrites : RoleAt(set, index);
}
inline Role PromisedRoleOf(const TouchSet& set, const Range* range) {
  return set.learned ? Role::kReadsAndWrites : RoleOf(set, range);
}
void AssignRoles(const Addresses& addresses, TouchSet* set);
bool AnyEmpty(const TouchSet& set);

}  // namespace spillway::interposer
