// The report's figures for one device.
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
  std::int64_t dropped = 0;  // evicted without a copy
  std::int64_t hits = 0, late = 0, unused = 0;
  std::int64_t copy_ns = 0;
};

// Sums by size: an iteration reallocates its short-lived buffers each time.
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

// A time without computation on the device.
struct IdleDevice : RecordedSpan {
  std::int64_t copy_in_ns = 0, copy_out_ns = 0,
               stall_ns = 0;  // of this time, while a copy or stall went on
};

// A time between two uses of a buffer.
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
  MovedBuffer moved;
  std::vector<MovedBuffer> buffers;  // most bytes first
  std::vector<MovedSize> sizes;      // most bytes first
  std::map<std::string, MovedByCause> out_by_cause, in_by_cause;
  std::map<std::string, StalledByCause> stalls;
  std::vector<RecordedSpan> empty;  // no events at all, for at least a twentieth of the run
  std::vector<IdleDevice> idle_device;
  std::vector<IdleBuffer> idle_buffers;
  std::int64_t measured_iteration_ns = 0;  // median under the last plan; 0: none
  RecordedSpan typical_iteration;          // the last one of about that length
};

RunFigures ComputeFigures(const RecordedDevice& device);

// The busy share of each of `columns` equal parts of `within`. Spans may overlap.
std::vector<double> BusyShares(std::vector<RecordedSpan> spans, const RecordedSpan& within,
                               int columns);

// Gaps of at least `least_ns` between the spans, within `within`; in order of time.
std::vector<RecordedSpan> StretchesWithout(std::vector<RecordedSpan> spans,
                                           const RecordedSpan& within, std::int64_t least_ns);

template <class Spans>
std::vector<RecordedSpan> SpansOf(const Spans& spans) {
  return {spans.begin(), spans.end()};
}

}  // namespace spillway::cli
