// Real memory that processes get: slabs of the node's pool, and places at the devices' links. The
// daemon's implementation is in agent/shares; tests have fakes, and a node may have none.
#pragma once

#include <optional>
#include <vector>

#include "agent/arbiter/terms.h"
#include "agent/pool/pool.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class Shares {
 public:
  struct Place {
    uint32_t slot = 0;
    int terms_file = -1, lanes_file = -1;  // owned by the Shares
  };

  virtual ~Shares() = default;

  // NUMA node near the device; kAnyNode: unknown.
  virtual int NodeNear(DeviceId /*device*/) const { return kAnyNode; }

  // In the slower direction; 0: unknown.
  virtual int64_t LinkBytesPerSecond(DeviceId /*device*/) const { return 0; }

  // The host pool. Without one, requests get nothing.
  virtual void SetQuota(const PoolJob& job, int64_t bytes) = 0;
  // Jobs' host memory outside the pool.
  virtual void SetOutside(int64_t bytes) = 0;
  virtual std::vector<Lease> AskForSlabs(const PoolHolder& holder, DeviceId near,
                                         int64_t size_bytes, SlabKinds kinds) = 0;
  virtual void ReturnSlab(const PoolHolder& holder, protocol::SlabName name) = 0;
  virtual std::vector<Lease> Claim(const PoolHolder& holder) = 0;
  virtual int64_t HeldBytes(const PoolHolder& holder) = 0;
  virtual void StopAsking(const PoolHolder& holder) = 0;
  virtual void ProcessGone(const PoolHolder& holder) = 0;
  virtual void JobGone(const PoolJob& job) = 0;
  virtual void ForgetUnclaimed() = 0;
  virtual void GiveBackUnused(int64_t now_ns) = 0;
  // True: unserved processes should ask again.
  virtual bool TakeMadeSlabs() = 0;
  virtual std::optional<PoolView> View() const = 0;

  // For files of evicted memory, all together; 0: none. And such a file, its space reserved.
  virtual int64_t SpillBytes() const { return 0; }
  virtual base::Result<base::UniqueFd> OpenSpillFile(int64_t /*bytes*/) {
    return base::Error{"there is no folder for such files"};
  }

  // Nullopt: none is left, or no memory for it.
  virtual std::optional<Place> JoinLink(DeviceId device, uint32_t weight) = 0;
  virtual void SetLinkWeight(DeviceId device, uint32_t slot, uint32_t weight) = 0;
  virtual void LeaveLink(DeviceId device, uint32_t slot) = 0;
  virtual void MendLinks(int64_t now_ns) = 0;
};

}  // namespace spillway::agent
