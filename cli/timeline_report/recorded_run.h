// A trace of `spillway run --trace` in memory (docs/trace_format.md). Throws Failure for any other
// file.
//
// Invariants
//  1. A trace that breaks off, even in mid-event, is read up to there; `is_whole` is false then.
//  2. Times are within a hundred days of the beginning, bytes below 2^60, durations not negative.
//     So sums do not overflow.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace spillway::cli {

struct RecordedSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct RecordedOperation : RecordedSpan {
  std::int64_t stream = 0;
  std::vector<std::uint64_t> touches;
};

struct RecordedCopy : RecordedSpan {
  bool is_out = false;
  std::uint64_t buffer = 0;
  std::int64_t size_bytes = 0;
  std::string cause;
};

struct RecordedStall : RecordedSpan {
  std::string cause;
};

struct RecordedIteration : RecordedSpan {
  std::int64_t misses = 0;
};

struct RecordedMemory {
  std::int64_t time_ns = 0;
  std::int64_t resident_bytes = 0, budget_bytes = 0, wanted_bytes = 0, host_bytes = 0;
};

struct RecordedPlan {
  std::int64_t time_ns = 0;
  std::string strategy;
  std::int64_t predicted_ns = 0, budget_bytes = 0, actions = 0, operations = 0;
};

// Such as "allocated" or "prefetch hit".
struct RecordedMoment {
  std::int64_t time_ns = 0;
  std::string name;
  std::uint64_t buffer = 0;
  std::int64_t size_bytes = 0;
};

struct RecordedDevice {
  std::vector<RecordedOperation> operations;
  std::vector<RecordedCopy> copies;
  std::vector<RecordedStall> stalls;
  std::vector<RecordedIteration> iterations;
  std::vector<RecordedMemory> memory;
  std::vector<RecordedPlan> plans;
  std::vector<RecordedMoment> moments;
};

struct RecordedRun {
  std::string command;
  bool is_whole = false;
  std::int64_t lost_events = 0;
  std::map<int, RecordedDevice> devices;
};

RecordedRun ReadRecordedRun(std::istream& trace, const std::string& name);

}  // namespace spillway::cli
