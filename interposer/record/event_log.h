// A job's events as text, as the learner receives them (docs/trace_format.md, events as text).
//
// Only with SPILLWAY_EVENTS, for tests and for planning elsewhere.
// Invariants
//  1. No addresses: allocations have their numbers, operations the hash of their shape.
//  2. The file has whole lines at every Flush. After an error or End nothing more is written.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "interposer/record/recorder.h"
#include "scheduler/learn/iteration_pattern.h"

namespace spillway::interposer {

class EventLog {
 public:
  // Empties the file.
  explicit EventLog(const char* path);

  void AddAlive(const LiveAllocation& allocation);
  void Add(const Recorder::Drained& drained);
  void Flush();
  // There is a plan: adds how long the iteration's operations take.
  void End(const scheduler::IterationPattern& planned);

 private:
  std::size_t NumberOf(std::uint64_t shape);
  void AddThread(std::uint32_t thread);
  void AddOperation(std::uint64_t shape, std::span<const RecordedTouch> touches);
  [[gnu::format(printf, 2, 3)]] void Print(const char* format, ...);

  base::UniqueFd file_;  // empty after an error
  std::string unwritten_;
  std::map<std::uint64_t, std::size_t> numbers_;
  std::uint32_t thread_ = 0;
};

}  // namespace spillway::interposer
