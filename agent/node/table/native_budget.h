// The most that a job may hold under the driver's own limits, so that the driver never ends it for
// others. Pure.
//
// Invariants
//  1. A budget stays below the soft limit, or the hard one where there is no soft one, less the
//     contexts of the group's processes (base/external_limits.h).
//  2. A job in several control groups has the least of their budgets: each group stays within its
//  own.
#pragma once

#include "agent/node/device_processes.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

// nullopt: the driver limits nothing.
std::optional<int64_t> BudgetBelow(const NativeLimits& limits, int64_t processes);

// On the device of that UUID.
std::optional<int64_t> NativeBudgetOf(const Job& job, const std::string& uuid,
                                      const SessionTable& table, const DeviceProcesses& processes);

}  // namespace spillway::agent
