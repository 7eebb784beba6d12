#include "simulator/kernels/device_clock.h"

#include <algorithm>

namespace spillway::simulator::executor {
namespace {

constexpr std::int64_t kKilohertzPerGigahertz = 1'000'000;

std::int64_t the_cycles = 0;
std::int64_t the_kilohertz = kKilohertzPerGigahertz;
std::uint64_t the_latest_reader = 0;
std::int64_t the_first_read = 0;  // of that reader, in cycles

std::int64_t CyclesOf(std::int64_t duration_ns) {
  return static_cast<std::int64_t>(static_cast<__int128>(duration_ns) * the_kilohertz /
                                   kKilohertzPerGigahertz);
}

}  // namespace

void BeginClock(const LaunchShape& shape) {
  if (shape.clock_khz == 0) return;  // a grid that a kernel launched: its clock goes on
  the_kilohertz = shape.clock_khz;
  the_cycles = std::max(the_cycles, CyclesOf(shape.begin_ns));
  the_first_read = the_cycles;
}

std::int64_t ReadCycles(std::uint64_t reader) {
  if (reader != the_latest_reader) {
    the_latest_reader = reader;
    the_first_read = the_cycles;
  }
  constexpr std::int64_t kReadsPerWait = 4;
  return the_cycles += std::clamp((the_cycles - the_first_read) / kReadsPerWait, kCyclesPerRead,
                                  kMostCyclesPerRead);
}

std::int64_t ReadNanos(std::uint64_t reader) {
  return static_cast<std::int64_t>(static_cast<__int128>(ReadCycles(reader)) *
                                   kKilohertzPerGigahertz / the_kilohertz);
}

void Sleep(std::uint32_t duration_ns) {
  the_cycles += CyclesOf(duration_ns);
  the_first_read += CyclesOf(duration_ns);
}

}  // namespace spillway::simulator::executor
