// What a kernel reads and writes in host memory, and how long the link takes for that.
//
// Host memory is pinned, or lies at device addresses. Managed memory is not counted: a GPU moves
// its pages. The link's time belongs to the kernel's own duration: it does not slow down copies.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/driver/calls/simulator.h"

namespace spillway::simulator {

struct HostTraffic {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;

  std::uint64_t bytes() const { return read_bytes + written_bytes; }
};

bool IsOnHost(const Simulator& sim, std::uintptr_t address);

HostTraffic TrafficOf(const Simulator& sim, const std::vector<KernelUse>& uses);

// Of a kernel that says nothing: `moved_bytes` are spread evenly over the addresses among its
// `words`, half of them read.
HostTraffic TrafficOf(const Simulator& sim, const std::vector<std::uint64_t>& words,
                      std::uint64_t moved_bytes);

// Both directions at once, at the rates of a link that is busy both ways.
Nanos LinkTime(const Profile& profile, const HostTraffic& traffic);

}  // namespace spillway::simulator
