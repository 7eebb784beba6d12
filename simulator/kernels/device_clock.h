// The clock that kernels read: clock64() in cycles, %globaltimer in nanoseconds.
//
// Called by: kernel bodies (device/kernel.h, device/intrinsics.h), on the thread that runs the
// grid.
//
// Invariants
//  1. A grid's clock begins at the launch's modelled begin, and never goes back.
//  2. A read takes kCyclesPerRead and __nanosleep() its time; other instructions take none. So a
//     kernel that waits for a time ends, and runs repeat.
#pragma once

#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::simulator::executor {

inline constexpr std::int64_t kCyclesPerRead = 32;

void BeginClock(const LaunchShape& shape);
std::int64_t ReadCycles();
std::int64_t ReadNanos();
void Sleep(std::uint32_t duration_ns);

}  // namespace spillway::simulator::executor
