// Memory and work over time, as one SVG element for a page: its colours are the page's CSS classes.
//
// Pure.
#pragma once

#include <string>

#include "cli/timeline_report/recorded_run.h"

namespace spillway::cli {

// `title` and `description` are for those who do not see it; `id` is the page's own for it.
std::string TimelinePicture(const RecordedDevice& device, const RecordedSpan& within, const std::string& id,
                            const std::string& title, const std::string& description);

// "1.25 ms"
std::string FormatTime(std::int64_t time_ns);
std::string EscapeHtml(const std::string& text);

}  // namespace spillway::cli
