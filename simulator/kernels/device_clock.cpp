#include "simulator/kernels/device_clock.h"

#include <algorithm>

namespace spillway::simulator::executor {
namespace {

constexpr std::int64_t kKilohertzPerGigahertz = 1'000'000;

std::int64_t the_cycles = 0;
std::int64_t the_kilohertz = kKilohertzPerGigahertz;

std::int64_t CyclesOf(std::int64_t duration_ns) {
  return static_cast<std::int64_t>(static_cast<__int128>(duration_ns) * the_kilohertz /
                                   kKilohertzPerGigahertz);
}

}  // namespace

void BeginClock(const LaunchShape& shape) {
  if (shape.clock_khz == 0) return;  // a grid that a kernel launched: its clock goes on
  the_kilohertz = shape.clock_khz;
  the_cycles = std::max(the_cycles, CyclesOf(shape.begin_ns));
}

std::int64_t ReadCycles() { return the_cycles += kCyclesPerRead; }

std::int64_t ReadNanos() {
  return static_cast<std::int64_t>(static_cast<__int128>(ReadCycles()) * kKilohertzPerGigahertz /
                                   the_kilohertz);
}

void Sleep(std::uint32_t duration_ns) { the_cycles += CyclesOf(duration_ns); }

}  // namespace spillway::simulator::executor
