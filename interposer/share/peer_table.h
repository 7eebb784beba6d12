// Which contexts may use which others' memory (cuCtxEnablePeerAccess), as the driver granted.
//
// Called by hooks and by runtime, on any thread; synchronises itself. Owns plain facts.
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
    CUdevice device;  // the user's
    CUcontext owner;

    bool operator==(const Access&) const = default;
  };

  static PeerTable& Instance();

  void Enabled(const Access& access);
  // Returns whether the device has now lost all access to the owner's memory.
  bool Disabled(const Access& access);
  // The accesses that end with the context, as user or as owner.
  std::vector<Access> ContextGone(CUcontext context);
  std::vector<CUdevice> UsersOf(CUcontext owner);

 private:
  bool IsUsedFrom(CUdevice device, CUcontext owner) const SPILLWAY_REQUIRES(mutex_);

  base::Mutex mutex_{base::LockRank::kPeers};
  std::vector<Access> accesses_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer::share
