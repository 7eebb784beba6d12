// Shares that give what a test puts in, and remember what they were told.
#pragma once

#include <map>
#include <vector>

#include "agent/node/shares.h"

namespace spillway::agent {

class FakeShares : public Shares {
 public:
  void SetQuota(const PoolJob& job, int64_t bytes) override { quotas[job.name] = bytes; }
  void SetOutside(int64_t bytes) override { outside_bytes = bytes; }
  std::vector<Lease> AskForSlabs(const PoolHolder&, DeviceId, int64_t, SlabKinds) override {
    return std::exchange(leases, {});
  }
  void ReturnSlab(const PoolHolder&, protocol::SlabName name) override { returned.push_back(name); }
  std::vector<Lease> Claim(const PoolHolder&) override { return claimed; }
  int64_t HeldBytes(const PoolHolder& holder) override { return held_bytes[holder.pid]; }
  void StopAsking(const PoolHolder& holder) override { stopped.push_back(holder.pid); }
  void ProcessGone(const PoolHolder& holder) override { gone.push_back(holder.pid); }
  void JobGone(const PoolJob& job) override { quotas.erase(job.name); }
  void ForgetUnclaimed() override {}
  void GiveBackUnused(int64_t) override {}
  bool TakeMadeSlabs() override { return std::exchange(has_made, false); }
  std::optional<PoolView> View() const override { return std::nullopt; }
  std::optional<Place> JoinLink(DeviceId, uint32_t weight) override {
    if (has_places) weights[++last_slot] = weight;
    return has_places ? std::optional<Place>({last_slot, 0, 0}) : std::nullopt;
  }
  void SetLinkWeight(DeviceId, uint32_t slot, uint32_t weight) override { weights[slot] = weight; }
  void LeaveLink(DeviceId, uint32_t slot) override { weights.erase(slot); }
  void MendLinks(int64_t) override { ++mended; }

  std::vector<Lease> leases, claimed;
  std::map<pid_t, int64_t> held_bytes;
  bool has_made = false;
  std::map<std::string, int64_t> quotas;  // by the job's key
  std::vector<protocol::SlabName> returned;
  std::vector<pid_t> stopped, gone;
  int64_t outside_bytes = -1;
  bool has_places = true;
  std::map<uint32_t, uint32_t> weights;  // by slot
  uint32_t last_slot = 0;
  int mended = 0;
};

}  // namespace spillway::agent
