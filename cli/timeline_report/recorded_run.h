// What a trace of `spillway run --trace` says, in memory.
//
// One thread. ReadRecordedRun throws Failure for what is no such trace. docs/trace_format.md states
// the file.
//
// Invariants
//  1. A trace whose end is missing, also in the middle of an event, is read up to there; `is_whole`
//  says so.
//  2. Every time is within a hundred days of the beginning, every number of bytes below 2^60, and
//  no duration negative:
//     sums of them need no further care.
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

// "allocated", "prefetch hit" and the like.
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

// `name`: for messages.
RecordedRun ReadRecordedRun(std::istream& trace, const std::string& name);

}  // namespace spillway::cli
