// The clock that kernels read: clock64() in cycles, %globaltimer in nanoseconds.
//
// Invariants
//  1. A grid's clock begins at the launch's modelled begin, and never goes back.
//  2. A read takes kCyclesPerRead and __nanosleep() its time; other instructions take none. So a
//     kernel that waits for a time ends, and runs repeat.
//  3. A thread that reads again and again waits: each of its reads takes a quarter of its wait, as
//     millions of threads may wait one after another.
#pragma once

#include <cstdint>

#include "simulator/kernels/image.h"

namespace spillway::simulator::executor {

inline constexpr std::int64_t kCyclesPerRead = 32;
inline constexpr std::int64_t kMostCyclesPerRead = 1 << 16;

void BeginClock(const LaunchShape& shape);
std::int64_t ReadCycles(std::uint64_t reader);
std::int64_t ReadNanos(std::uint64_t reader);
void Sleep(std::uint32_t duration_ns);

}  // namespace spillway::simulator::executor
