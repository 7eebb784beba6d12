#include "simulator/driver/calls/host_traffic.h"

#include <algorithm>

namespace spillway::simulator {
namespace {

enum class Home { kNowhere, kDevice, kHost };

Home HomeOf(const Simulator& sim, std::uintptr_t address) {
  const Allocation* const allocation = sim.allocations.Find(address);
  if (const Mapping* const mapping = sim.addresses.Find(address); mapping != nullptr) {
    const bool is_managed = allocation != nullptr && allocation->kind == AllocationKind::kManaged;
    const bool is_host = mapping->block->location() == Location::kHost && !is_managed;
    return is_host ? Home::kHost : Home::kDevice;
  }
  if (allocation == nullptr) return Home::kNowhere;
  const bool is_pinned = allocation->kind == AllocationKind::kPinnedHost ||
                         allocation->kind == AllocationKind::kRegisteredHost;
  return is_pinned ? Home::kHost : Home::kDevice;
}

Nanos TimeFor(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  constexpr unsigned __int128 kNanosPerSecond = 1'000'000'000;
  return static_cast<Nanos>(bytes * kNanosPerSecond / bytes_per_second);
}

}  // namespace

bool IsOnHost(const Simulator& sim, std::uintptr_t address) {
  return HomeOf(sim, address) == Home::kHost;
}

HostTraffic TrafficOf(const Simulator& sim, const std::vector<KernelUse>& uses) {
  HostTraffic traffic;
  for (const KernelUse& use : uses) {
    if (use.pointer == nullptr || !IsOnHost(sim, reinterpret_cast<std::uintptr_t>(use.pointer)))
      continue;
    const bool writes_alone =
        use.kind == UseKind::kWrite || use.kind == UseKind::kPart || use.kind == UseKind::kFill;
    if (!writes_alone) traffic.read_bytes += use.size_bytes;
    if (use.kind != UseKind::kRead) traffic.written_bytes += use.size_bytes;
  }
  return traffic;
}

HostTraffic TrafficOf(const Simulator& sim, const std::vector<std::uint64_t>& words,
                      std::uint64_t moved_bytes) {
  std::uint64_t on_host = 0, known = 0;
  for (const std::uint64_t word : words) {
    const Home home = HomeOf(sim, word);
    on_host += home == Home::kHost;
    known += home != Home::kNowhere;
  }
  if (on_host == 0) return {};
  const std::uint64_t bytes = moved_bytes / known * on_host;
  return {bytes / 2, bytes - bytes / 2};
}

Nanos LinkTime(const Profile& profile, const HostTraffic& traffic) {
  const bool both = traffic.read_bytes != 0 && traffic.written_bytes != 0;
  const std::uint64_t read_rate =
      both ? profile.h2d_both_bytes_per_second : profile.h2d_bytes_per_second;
  const std::uint64_t write_rate =
      both ? profile.d2h_both_bytes_per_second : profile.d2h_bytes_per_second;
  return std::max(TimeFor(traffic.read_bytes, read_rate),
                  TimeFor(traffic.written_bytes, write_rate));
}

}  // namespace spillway::simulator
