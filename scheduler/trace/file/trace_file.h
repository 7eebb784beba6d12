// Reads and writes profiles and traces as versioned FlatBuffers.
//
// Readers check everything before use. A hostile file causes an error, and takes at most a small
// multiple of its size in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/trace/event.h"
#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

inline constexpr uint16_t kProfileVersion = 1;
inline constexpr uint16_t kTraceVersion = 1;

enum class TraceFileKind : uint8_t { kUnknown, kProfile, kTrace };

TraceFileKind KindOfFile(std::span<const uint8_t> bytes);

std::vector<uint8_t> WriteProfile(const IterationProfile& profile);
base::Result<IterationProfile> ReadProfile(std::span<const uint8_t> bytes);

std::vector<uint8_t> WriteTrace(const EventTrace& trace);
base::Result<EventTrace> ReadTrace(std::span<const uint8_t> bytes);

}  // namespace spillway::scheduler
