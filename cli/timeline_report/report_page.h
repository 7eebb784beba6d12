// The report of a run as HTML, without network access or scripts.
#pragma once

#include <string>

#include "cli/timeline_report/recorded_run.h"

namespace spillway::cli {

std::string ReportPage(const RecordedRun& run);

}  // namespace spillway::cli
