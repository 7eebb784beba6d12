// A report as Prometheus reads it. Pure; any thread.
//
// Invariants
//  1. A job's series end with the job: they are made from the report alone.
//  2. Labels are bounded: jobs, devices, and fixed words; no pid, no path. `job` is Prometheus's own word, ours is job_id.
#pragma once

#include <string>

#include "agent/node/node_report.h"

namespace spillway::agent {

std::string MetricsOf(const NodeReport& report);

}  // namespace spillway::agent
