// Draws memory and work over time as one SVG element; the page's CSS classes give colours.
#pragma once

#include <string>

#include "cli/timeline_report/recorded_run.h"

namespace spillway::cli {

struct PictureWords {
  std::string id;
  std::string title, description;  // for screen readers
};
// The axis counts from `origin_ns`.
std::string TimelinePicture(const RecordedDevice& device, const RecordedSpan& within,
                            std::int64_t origin_ns, const PictureWords& words);

// "1.25 ms"
std::string FormatTime(std::int64_t time_ns);

}  // namespace spillway::cli
