// Hands slabs of the node's pinned pool from the agent to this process's host pools.
//
// A host pool states its demand, takes slabs and returns them. The lease thread requests missing
// slabs and delivers them.
// Invariants
//  1. Slabs that are not taken, beyond a device's demand, go back to the agent.
//  2. Every slab counts as held until it is returned, even if the agent that lent it is gone.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "protocol/message.h"

namespace spillway::interposer {

struct HostSlab {
  protocol::SlabName name{};
  std::size_t bytes = 0;
  base::UniqueFd file;
  bool is_drivers = false;  // the file is the driver's handle for the memory
};

class HostSlabs {
 public:
  static HostSlabs& Instance();

  // `bytes`: its total demand, with the slabs that it has.
  void SetGoal(int device, std::size_t bytes) SPILLWAY_EXCLUDES(mutex_);
  // Takes slabs of one kind for `bytes` to `most_bytes`; none if they do not suffice.
  std::vector<HostSlab> Take(int device, std::size_t bytes, std::size_t most_bytes)
      SPILLWAY_EXCLUDES(mutex_);
  // Takes slabs of one kind for a region of that size or, once the demand is met, the last ones.
  std::vector<HostSlab> TakeAhead(int device, std::size_t region_bytes) SPILLWAY_EXCLUDES(mutex_);
  bool Have(int device, std::size_t bytes) const SPILLWAY_EXCLUDES(mutex_);
  void Return(int device, const std::vector<protocol::SlabName>& names) SPILLWAY_EXCLUDES(mutex_);

  std::size_t MissingBytes(int device) const SPILLWAY_EXCLUDES(mutex_);
  void Deliver(int device, std::vector<HostSlab> slabs) SPILLWAY_EXCLUDES(mutex_);
  std::vector<protocol::SlabName> Held() const SPILLWAY_EXCLUDES(mutex_);
  std::vector<protocol::SlabName> TakeReturned() SPILLWAY_EXCLUDES(mutex_);

 private:
  struct Device {
    std::size_t demand_bytes = 0;
    std::size_t slab_bytes = 0;  // of the latest slabs; 0: none has arrived yet
    std::vector<HostSlab> waiting;
    std::vector<protocol::SlabName> held;  // including the waiting ones
  };
  static std::size_t DemandBytes(const Device& device);
  static std::size_t MissingOf(const Device& device);
  static std::size_t WaitingOf(const Device& device, bool is_drivers);
  static std::vector<HostSlab> TakeWaiting(Device* device, std::size_t count, bool is_drivers);
  void ReturnExcess(Device* device) SPILLWAY_REQUIRES(mutex_);

  mutable base::Mutex mutex_{base::LockRank::kHostSlabs};
  Device devices_[protocol::kMostDevices] SPILLWAY_GUARDED_BY(mutex_);
  std::vector<protocol::SlabName> returned_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
