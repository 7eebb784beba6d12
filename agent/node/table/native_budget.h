// The most that a job may hold under the driver's own limits, so that the driver never ends it for
// others. Pure.
//
// A limit is a control group's, for all of its processes together.
//
// Invariants
//  1. The budgets of a group's jobs, the contexts of their processes (base/external_limits.h) and
//     what its other processes hold stay together below the soft limit, or the hard one where there
//     is no soft one.
//  2. A job has at most an equal part, and no more than the group's other processes leave now.
//  3. A job in several control groups has the least of their budgets: each group stays within its
//     own.
#pragma once

#include "agent/node/device_processes.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

struct NativeBudget {
  std::optional<int64_t> bytes;  // nullopt: the driver limits nothing
  bool is_told = false;          // of each process of the job there
};

// On the device of that UUID.
NativeBudget NativeBudgetOf(const Job& job, const std::string& uuid, const SessionTable& table,
                            const DeviceProcesses& processes);

}  // namespace spillway::agent
