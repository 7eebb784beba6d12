#include "interposer/lease/host_slabs.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {

using base::MutexLock;
using protocol::SlabName;

HostSlabs& HostSlabs::Instance() {
  static HostSlabs* const slabs = new HostSlabs;
  return *slabs;
}

// Rounds to whole slabs once their size is known.
std::size_t HostSlabs::DemandBytes(const Device& device) {
  return device.slab_bytes == 0 ? device.demand_bytes
                                : device.demand_bytes / device.slab_bytes * device.slab_bytes;
}

void HostSlabs::SetGoal(int device, std::size_t bytes) {
  const MutexLock lock(mutex_);
  devices_[device].demand_bytes = bytes;
  ReturnExcess(&devices_[device]);
}

void HostSlabs::ReturnExcess(Device* device) {
  while (!device->waiting.empty() &&
         device->held.size() * device->slab_bytes > DemandBytes(*device)) {
    const SlabName name = device->waiting.back().name;
    device->waiting.pop_back();
    std::erase(device->held, name);
    returned_.push_back(name);
  }
}

std::vector<HostSlab> HostSlabs::Take(int device, std::size_t bytes, std::size_t most_bytes) {
  const MutexLock lock(mutex_);
  Device& own = devices_[device];
  if (own.slab_bytes == 0) return {};
  const std::size_t count = (bytes + own.slab_bytes - 1) / own.slab_bytes;
  const bool is_drivers = WaitingOf(own, true) >= count;
  if (count > WaitingOf(own, is_drivers) || count * own.slab_bytes > most_bytes) return {};
  return TakeWaiting(&own, count, is_drivers);
}

std::vector<HostSlab> HostSlabs::TakeAhead(int device, std::size_t region_bytes) {
  const MutexLock lock(mutex_);
  Device& own = devices_[device];
  if (own.slab_bytes == 0) return {};
  const bool is_drivers = WaitingOf(own, true) > WaitingOf(own, false);
  const std::size_t waiting = WaitingOf(own, is_drivers);
  const std::size_t count = std::max<std::size_t>(region_bytes / own.slab_bytes, 1);
  if (waiting < count && MissingOf(own) > 0) return {};
  return TakeWaiting(&own, std::min(count, waiting), is_drivers);
}

std::vector<HostSlab> HostSlabs::TakeWaiting(Device* device, std::size_t count, bool is_drivers) {
  std::vector<HostSlab> taken;
  for (std::size_t at = device->waiting.size(); taken.size() < count;) {
    if (device->waiting[--at].is_drivers != is_drivers) continue;
    taken.push_back(std::move(device->waiting[at]));
    device->waiting.erase(device->waiting.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return taken;
}

std::size_t HostSlabs::WaitingOf(const Device& device, bool is_drivers) {
  return static_cast<std::size_t>(
      std::count_if(device.waiting.begin(), device.waiting.end(),
                    [is_drivers](const HostSlab& slab) { return slab.is_drivers == is_drivers; }));
}

bool HostSlabs::Have(int device, std::size_t bytes) const {
  const MutexLock lock(mutex_);
  const Device& own = devices_[device];
  const std::size_t most = std::max(WaitingOf(own, false), WaitingOf(own, true));
  return most * own.slab_bytes >= bytes && bytes > 0;
}

void HostSlabs::Return(int device, const std::vector<SlabName>& names) {
  const MutexLock lock(mutex_);
  for (const SlabName name : names) {
    std::erase(devices_[device].held, name);
    returned_.push_back(name);
  }
}

std::size_t HostSlabs::MissingBytes(int device) const {
  const MutexLock lock(mutex_);
  return MissingOf(devices_[device]);
}

std::size_t HostSlabs::MissingOf(const Device& device) {
  const std::size_t held_bytes = device.held.size() * device.slab_bytes;
  const std::size_t demand_bytes = DemandBytes(device);
  return demand_bytes - std::min(demand_bytes, held_bytes);
}

void HostSlabs::Deliver(int device, std::vector<HostSlab> slabs) {
  const MutexLock lock(mutex_);
  Device& own = devices_[device];
  for (HostSlab& slab : slabs) {
    // The agent's configuration has changed. Slabs of a second size are not worth the trouble.
    if (!own.held.empty() && own.slab_bytes != slab.bytes) {
      returned_.push_back(slab.name);
      continue;
    }
    own.slab_bytes = slab.bytes;
    own.held.push_back(slab.name);
    own.waiting.push_back(std::move(slab));
  }
  ReturnExcess(&own);
}

std::vector<SlabName> HostSlabs::Held() const {
  const MutexLock lock(mutex_);
  std::vector<SlabName> held;
  for (const Device& device : devices_)
    held.insert(held.end(), device.held.begin(), device.held.end());
  return held;
}

std::vector<SlabName> HostSlabs::TakeReturned() {
  const MutexLock lock(mutex_);
  return std::exchange(returned_, {});
}

}  // namespace spillway::interposer
