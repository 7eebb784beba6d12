#include "interposer/share/peer_table.h"

#include <algorithm>

namespace spillway::interposer::share {

using base::MutexLock;

PeerTable& PeerTable::Instance() {
  static PeerTable* const table = new PeerTable;
  return *table;
}

void PeerTable::Enabled(const Access& access) {
  const MutexLock lock(mutex_);
  accesses_.push_back(access);
}

bool PeerTable::IsUsedFrom(CUdevice device, CUcontext owner) const {
  return std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& access) {
    return access.device == device && access.owner == owner;
  });
}

bool PeerTable::Disabled(const Access& access) {
  const MutexLock lock(mutex_);
  const auto found = std::find(accesses_.begin(), accesses_.end(), access);
  if (found == accesses_.end()) return false;
  accesses_.erase(found);
  return !IsUsedFrom(access.device, access.owner);
}

std::vector<PeerTable::Access> PeerTable::ContextGone(CUcontext context) {
  const MutexLock lock(mutex_);
  const auto ends = [&](const Access& access) {
    return access.user == context || access.owner == context;
  };
  const auto first = std::stable_partition(accesses_.begin(), accesses_.end(),
                                           [&](const Access& access) { return !ends(access); });
  std::vector<Access> ended(first, accesses_.end());
  accesses_.erase(first, accesses_.end());
  std::erase_if(ended, [&](const Access& access) SPILLWAY_REQUIRES(mutex_) {
    return IsUsedFrom(access.device, access.owner);
  });
  return ended;
}

std::vector<CUdevice> PeerTable::UsersOf(CUcontext owner) {
  const MutexLock lock(mutex_);
  std::vector<CUdevice> devices;
  for (const Access& access : accesses_) {
    if (access.owner == owner &&
        std::find(devices.begin(), devices.end(), access.device) == devices.end())
      devices.push_back(access.device);
  }
  return devices;
}

}  // namespace spillway::interposer::share
