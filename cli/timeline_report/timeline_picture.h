// Memory and work over time, as one SVG element for a page: its colours are the page's CSS classes.
//
// Pure.
#pragma once

#include <string>

#include "cli/timeline_report/recorded_run.h"

namespace spillway::cli {

struct PictureWords {
  std::string id;                  // the page's own for it
  std::string title, description;  // for those who do not see it
};
// Times on its axis are since `origin_ns`.
std::string TimelinePicture(const RecordedDevice& device, const RecordedSpan& within,
                            std::int64_t origin_ns, const PictureWords& words);

// "1.25 ms"
std::string FormatTime(std::int64_t time_ns);

}  // namespace spillway::cli
