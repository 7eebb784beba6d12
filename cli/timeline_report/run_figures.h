// What the page tells of one device, computed from what was recorded there.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/timeline_report/recorded_run.h"

namespace spillway::cli {

struct MovedBuffer {
  std::uint64_t buffer = 0;
  std::int64_t size_bytes = 0;
  std::int64_t out_bytes = 0, in_bytes = 0;
  std::int64_t times_out = 0, times_in = 0;
  std::int64_t dropped = 0;  // left without a copy
  std::int64_t hits = 0, late = 0, unused = 0;
  std::int64_t copy_ns = 0;
};

// All that moved of one size: an iteration makes its short-lived allocations anew each time.
struct MovedSize {
  std::int64_t allocations = 0;
  MovedBuffer moved;
};

struct MovedByCause {
  std::int64_t times = 0, bytes = 0, copy_ns = 0;
};

struct StalledByCause {
  std::int64_t times = 0, total_ns = 0, longest_ns = 0;
};

// A time in which the device computed nothing.
struct IdleDevice : RecordedSpan {
  std::int64_t copy_in_ns = 0, copy_out_ns = 0, stall_ns = 0;  // of it, such was going on
};

// A time in which nobody used a buffer.
struct IdleBuffer : RecordedSpan {
  std::uint64_t buffer = 0;
  std::int64_t size_bytes = 0;
  bool was_away = false;
};

struct RunFigures {
  RecordedSpan span;
  std::int64_t budget_bytes = 0;  // the last one
  std::int64_t resident_peak_bytes = 0, wanted_peak_bytes = 0, host_peak_bytes = 0;
  std::int64_t computing_ns = 0;
  MovedBuffer moved;                 // all together
  std::vector<MovedBuffer> buffers;  // the most bytes first
  std::vector<MovedSize> sizes;      // the same
  std::map<std::string, MovedByCause> out_by_cause, in_by_cause;
  std::map<std::string, StalledByCause> stalls;
  std::vector<RecordedSpan>
      empty;  // nothing at all was recorded, for a twentieth of the run or longer
  std::vector<IdleDevice> idle_device;     // the longest first
  std::vector<IdleBuffer> idle_buffers;    // the most bytes and time first
  std::int64_t measured_iteration_ns = 0;  // the median of the last plan's; 0: none
  RecordedSpan typical_iteration;          // the last one of about that length
};

RunFigures ComputeFigures(const RecordedDevice& device);

// Parts of the spans that lie within [begin, end), as shares of each of `columns` equal parts of
// it. Spans may overlap.
std::vector<double> BusyShares(std::vector<RecordedSpan> spans, const RecordedSpan& within,
                               int columns);

// Where none of the spans is, within `within`, for `least_ns` or longer; in the order of time.
std::vector<RecordedSpan> StretchesWithout(std::vector<RecordedSpan> spans,
                                           const RecordedSpan& within, std::int64_t least_ns);

template <class Spans>
std::vector<RecordedSpan> SpansOf(const Spans& spans) {
  return {spans.begin(), spans.end()};
}

}  // namespace spillway::cli
