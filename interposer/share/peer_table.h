// Which contexts may use which others' memory (cuCtxEnablePeerAccess), as the driver granted.
//
// Invariant: an entry lives until it is disabled or one of its contexts ends.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer::share {

class PeerTable {
 public:
  struct Access {
    CUcontext user;
    CUdevice device;
    CUcontext owner;

    bool operator==(const Access&) const = default;
  };

  static PeerTable& Instance();

  void Enabled(const Access& access);
  // Whether the device has now lost all access to the owner's memory.
  bool Disabled(const Access& access);
  // As user or as owner.
  std::vector<Access> ContextGone(CUcontext context);
  std::vector<CUdevice> UsersOf(CUcontext owner);

 private:
  bool IsUsedFrom(CUdevice device, CUcontext owner) const SPILLWAY_REQUIRES(mutex_);

  base::Mutex mutex_{base::LockRank::kPeers};
  std::vector<Access> accesses_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer::share
