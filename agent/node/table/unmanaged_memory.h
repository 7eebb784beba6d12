// Device memory that the agent does not manage: of processes that follow no agent, and what a job's
// process holds beside what it reports. Pure.
//
// Invariants
//  1. A process that has registered a device, connected or not, may hold kContextBytes there beside
//     its report: its context, kernels and libraries.
//  2. A report counts up to the process's budget.
//  3. Without the driver's count nothing is said of a device.
#pragma once

#include "agent/arbiter/arbiter.h"
#include "agent/node/device_processes.h"
#include "agent/node/node_report.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

inline constexpr int64_t kContextBytes = int64_t{1} << 30;

// `report` has the node's devices.
void AddUnmanaged(const DeviceProcesses& processes, const SessionTable& table,
                  const Arbiter& arbiter, NodeReport& report);

}  // namespace spillway::agent
