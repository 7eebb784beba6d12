// Another device that may use the job's memory: by addresses that no call of ours names, NCCL's kernels say. So all memory
// is on the device while that lasts.
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

CUresult JobMemory::AllowPeer(CUdevice peer) {
  AwaitBudget([this]() SPILLWAY_REQUIRES(state_) { return counters_.wanted_bytes <= budget_bytes_; });
  const base::ScopedCount call(&calls_for_memory_);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  const MutexLock making(making_);
  {
    const MutexLock lock(state_);
    if (counters_.wanted_bytes > budget_bytes_) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    SetPeer(peer, true);
  }
  if (EndRecipesWhileMaking() && BringAll()) return CUDA_SUCCESS;
  const MutexLock lock(state_);
  SetPeer(peer, false);
  return OutOfMemory();
}

void JobMemory::DenyPeer(CUdevice peer) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  SetPeer(peer, false);
}

void JobMemory::SetPeer(CUdevice peer, bool allowed) {
  residency_.SetPeer(peer, allowed);
  slabs_.ForEachSlab([&](CUdeviceptr base) { Residency::SetPeerAt(base, kGranuleBytes, peer, allowed); });
  const int before = peer_count_.fetch_add(allowed ? 1 : -1, std::memory_order_relaxed);
  UnmovableBytes& kept = counters_.UnmovableFor(Unmovable::kPeers);
  if (allowed && before == 0) {
    peers_bytes_ = counters_.wanted_bytes;
    kept.Add(peers_bytes_);
  } else if (!allowed && before == 1) {
    kept.bytes -= peers_bytes_;
  }
}

namespace {

// Of the hold that keeps what peers may use; no handle has this bit.
std::uint64_t PeersHoldOf(CUdeviceptr address) { return address | (std::uint64_t{1} << 63); }

}  // namespace

// A peer may write what a host copy holds and what recipes read.
CUresult JobMemory::AllowPeerAt(CUdeviceptr address, CUdevice peer) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  if (!EndRecipes()) return CUDA_ERROR_OUT_OF_MEMORY;
  Addresses addresses;
  addresses.push_back(address);
  TouchSet set;
  const CUresult begun = Begin(addresses, {}, Effect::kMayWrite, &set);
  if (begun != CUDA_SUCCESS) return begun;
  Hold(PeersHoldOf(address), address, Unmovable::kPeers);
  const bool is_on_device = SetPeerOf(address, peer, true);
  End(&set, Effect::kMayWrite);
  if (is_on_device) return Driver().cuStreamSynchronize(nullptr);  // a peer may be the first to use it
  EndHold(PeersHoldOf(address));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void JobMemory::DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  SetPeerOf(address, peer, false);
  if (is_last) EndHold(PeersHoldOf(address));
}

// False where the allocation is not on the device: parked, since there is no room for it.
bool JobMemory::SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) {
  const MutexLock lock(state_);
  Allocation* const found = FindUsable(address);
  if (!found) return false;
  if (IsBlock(found)) {
    Residency::SetPeerAt(AsBlock(found)->slab->plan.base, kGranuleBytes, peer, allowed);
    return true;
  }
  if (!residency_.IsMapped(AsRange(found))) return false;
  Residency::SetPeerAt(found->base, found->size_bytes, peer, allowed);
  return true;
}

// Everything that is allocated gets memory, and its bytes come back.
bool JobMemory::BringAll() {
  TouchSet set;
  {
    const MutexLock lock(state_);
    residency_.CancelLeaving();
    Residency* const residency = &residency_;
    residency->ForEachLive([&, residency](Range* range) {
      if (residency->IsMapped(range)) return;
      residency->Pin(range);
      set.ranges.push_back(range);
    });
  }
  const bool all = MakeAllResident(&set);
  {
    const MutexLock lock(state_);
    for (Range* range : set.ranges) residency_.Unpin(range);
  }
  EndMoving();
  return all;
}

}  // namespace spillway::interposer
