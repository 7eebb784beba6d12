// A job's figures, summed over its living and ended processes. Pure.
#pragma once

#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

// Without the arbiter's views of its tenancies.
JobReport ReportOf(const Job& job, const SessionTable& table, const NodeFacts& facts,
                   int64_t now_ns);

// Adds what a process has done, which counts on after its end; not what it holds.
void AddUsage(const Registration& registration, TenancyReport& sum);

}  // namespace spillway::agent
