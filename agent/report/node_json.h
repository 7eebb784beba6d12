// A report as JSON values, for the pages that are made of them. Pure.
//
// Invariants
//  1. Within schema 1 a field keeps its meaning and unit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "agent/node/node_report.h"

namespace spillway::agent {

// "waiting", "rejected", or the phase.
const char* StateOf(const TenancyReport& tenancy);
// Evicted data of all jobs that is not pinned.
// The job whose turn on the device is next; empty: nobody waits.
std::string NextOf(const DeviceReport& device, const NodeReport& report);
int64_t OrdinaryBytes(const NodeReport& report);

nlohmann::ordered_json JsonOf(const JobReport& job);
// At most so many jobs: those that began first.
nlohmann::ordered_json JsonOfNode(const NodeReport& report, size_t most_jobs = SIZE_MAX);

}  // namespace spillway::agent
