// Formats a report for Prometheus.
//
// Invariants
//  1. A job's series end with the job: they are made from the report alone.
//  2. Labels are bounded: jobs, devices and fixed words; no pid, no path. Our label is job_id, as
//     Prometheus uses `job`.
#pragma once

#include <map>
#include <string>

#include "agent/node/node_report.h"

namespace spillway::agent {

// `used_bytes`: by UUID, where known.
std::string MetricsOf(const NodeReport& report,
                      const std::map<std::string, int64_t>& used_bytes = {});

}  // namespace spillway::agent
