// Events as lines of text, as a job writes them with SPILLWAY_EVENTS (docs/trace_format.md).
//
// Invariants
//  1. What is returned passes CheckTrace. An error names the line.
//  2. An operation's identity is its shape in hexadecimal: ShapeOf returns the learner's number.
//  3. Text has a duration per identity, the mean of what was measured; 0 where nothing was.
//     Operations start one after another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/trace/event.h"

namespace spillway::scheduler {

inline constexpr std::string_view kEventTextHead = "spillway events 1\n";

base::Result<EventTrace> ReadEventText(std::string_view text);

// 0 for an identity that was not read from text.
uint64_t ShapeOf(const std::string& identity);

}  // namespace spillway::scheduler
