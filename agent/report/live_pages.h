// The documents of the live page: the newest state with its rates, and the history. Pure.
//
// Invariants
//  1. JSON on one line, "schema": 1: within it a field keeps its meaning and unit.
//  2. EventOf has at most kMostEventJobs jobs, so its size is bounded; "jobs_left_out" counts
//  others.
#pragma once

#include <string>

#include "agent/node/node_report.h"
#include "agent/report/history.h"

namespace spillway::agent {

inline constexpr size_t kMostEventJobs = 256;

// `history` has the report as its newest one. The document is that of PageOf's status, with "now"
// for each device and each job on a device: {"to_host_bytes_per_second", ..., "stall_permille":
// {cause: ...}}.
std::string LiveState(const NodeReport& report, const NodeHistory& history);

// The state as a server-sent event (WHATWG HTML, 9.2), named "state".
std::string EventOf(const NodeReport& report, const NodeHistory& history);

// {"at_ms": [...], "series": [{"device", "first", "budget_bytes": [...], ...}]}: sample i of a
// series is of at_ms[first + i].
std::string DeviceHistory(const NodeReport& report, const NodeHistory& history);
// Likewise, of one job on its devices. No series: the job has none.
std::string JobHistory(const std::string& job, const NodeReport& report,
                       const NodeHistory& history);

}  // namespace spillway::agent
