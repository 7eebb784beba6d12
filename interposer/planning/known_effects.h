// How much is known of what an iteration's operations do to memory, for the report.
//
// The planner thread notes it with each planning; any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/learn/iteration_pattern.h"

namespace spillway::interposer {

struct KnownEffects {
  std::atomic<std::uint64_t> operations{0}, repeatable_operations{0};
  // Touches of which documents, experiments, or neither say whether they read and write.
  std::atomic<std::uint64_t> documented{0}, measured{0}, unknown{0};

  // `pattern` as recorded; `proven` with what experiments have shown.
  void Note(const scheduler::IterationPattern& pattern, const scheduler::IterationPattern& proven) {
    const auto number = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    const std::uint64_t by_document = number(KnownTouchCount(pattern));
    const std::uint64_t known = number(KnownTouchCount(proven));
    operations = proven.profile.operations.size();
    repeatable_operations = number(ReplayableCount(proven));
    documented = by_document;
    measured = known - by_document;
    unknown = proven.touches.size() - known;
  }
};

}  // namespace spillway::interposer
