// Profiles and traces as bytes: FlatBuffers, versioned, everything checked before use.
//
// Called by whoever keeps traces (agent, command line, tests), on any thread. Pure: bytes in,
// values out. Readers trust nothing: a hostile file gives an error, never a crash, and never more
// memory than a small multiple of its own size.
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

// By the file's identifier only.
TraceFileKind KindOfFile(std::span<const uint8_t> bytes);

std::vector<uint8_t> WriteProfile(const IterationProfile& profile);
base::Result<IterationProfile> ReadProfile(
    std::span<const uint8_t> bytes);  // passes CheckProfile()

std::vector<uint8_t> WriteTrace(const EventTrace& trace);
base::Result<EventTrace> ReadTrace(std::span<const uint8_t> bytes);  // passes CheckTrace()

}  // namespace spillway::scheduler
