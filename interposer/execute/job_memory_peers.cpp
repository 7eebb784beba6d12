// Another device that may use the job's memory: by addresses that no call of ours names, NCCL's kernels say. So all memory
// is on the device while that lasts.
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

CUresult JobMemory::AllowPeer(CUdevice peer) {
  state_.budget.Await([this]() SPILLWAY_REQUIRES(kStateLock) {
    return state_.counters.wanted_bytes <= state_.budget.bytes();
  });
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    if (state_.counters.wanted_bytes > state_.budget.bytes()) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    SetPeer(peer, true);
  }
  if (replays_.EndRecipesWhileMaking() && restores_.BringAll()) return CUDA_SUCCESS;
  const StateLock lock(state_.locks);
  SetPeer(peer, false);
  return state_.OutOfMemory();
}

void JobMemory::DenyPeer(CUdevice peer) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  SetPeer(peer, false);
}

void JobMemory::SetPeer(CUdevice peer, bool allowed) {
  state_.residency.SetPeer(peer, allowed);
  state_.slabs.ForEachSlab(
      [&](CUdeviceptr base) { Residency::SetPeerAt(base, kGranuleBytes, peer, allowed); });
  const int before = state_.peer_count.fetch_add(allowed ? 1 : -1, std::memory_order_relaxed);
  UnmovableBytes& kept = state_.counters.UnmovableFor(Unmovable::kPeers);
  if (allowed && before == 0) {
    peers_bytes_ = state_.counters.wanted_bytes;
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
  const CurrentContext current(state_.context);
  if (!replays_.EndRecipes()) return CUDA_ERROR_OUT_OF_MEMORY;
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
  const CurrentContext current(state_.context);
  SetPeerOf(address, peer, false);
  if (is_last) EndHold(PeersHoldOf(address));
}

// False where the allocation is not on the device: parked, since there is no room for it.
bool JobMemory::SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) {
  const StateLock lock(state_.locks);
  Allocation* const found = state_.FindUsable(address);
  if (!found) return false;
  if (IsBlock(found)) {
    Residency::SetPeerAt(AsBlock(found)->slab->plan.base, kGranuleBytes, peer, allowed);
    return true;
  }
  if (!state_.residency.IsMapped(AsRange(found))) return false;
  Residency::SetPeerAt(found->base, found->size_bytes, peer, allowed);
  return true;
}

}  // namespace spillway::interposer
