// The epilog's line about a job: what it held, moved and waited for on this node.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "protocol/message.h"

namespace spillway::slurm {

struct EndedJob {
  uint32_t job = 0;
  uint32_t user = 0;
  protocol::JobTotals totals = {};
};

// "job=5 uid=1000 peak_bytes=... ", without a time.
std::string TotalsLine(const EndedJob& ended);

// Appends "time=2026-11-26T01:02:03Z LINE" to the file, whole even beside other epilogs.
base::Status AppendToLog(const std::string& path, const std::string& line, int64_t now_s);

}  // namespace spillway::slurm
