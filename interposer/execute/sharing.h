// Memory of the job that others use: another device, by addresses that no call of ours names
// (NCCL's kernels, say), and other processes, which map it.
//
// Called by the hooks and by the export service's thread.
//
// Invariants
//  1. While another device may use all memory, all of it is on the device, and no more is granted
//  than the budget.
//  2. What is shared alone is on the device and stays there until the last user is denied, or its
//  hold ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/execute/held_ranges.h"
#include "interposer/execute/job_calls.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/shared_memory.h"

namespace spillway::interposer {

class Sharing {
 public:
  Sharing(JobState& state, Restores& restores, Replays& replays, HeldRanges& held, JobCalls& calls)
      : state_(state), restores_(restores), replays_(replays), held_(held), calls_(calls) {}

  // Another device's work may use the job's memory, also where no call of ours names it: until
  // DenyPeer all of it is on the device, and no more is granted than the budget.
  // CUDA_ERROR_PEER_ACCESS_UNSUPPORTED while more than that is allocated.
  CUresult AllowPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The same for one allocation, of a pool: until DenyPeerAt, or its free, it stays. What shares a
  // slab with it is open, too.
  CUresult AllowPeerAt(CUdeviceptr address, CUdevice peer)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  // Brings the allocation to the device, where it stays until EndHold(owner), and lets others have
  // its memory.
  CUresult Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsShareable() SPILLWAY_EXCLUDES(kStateLock);

 private:
  void SetPeer(CUdevice peer, bool allowed) SPILLWAY_REQUIRES(kStateLock);
  bool SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) SPILLWAY_EXCLUDES(kStateLock);
  CUresult ShareResident(CUdeviceptr address, SharedMemory* out) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Restores& restores_;
  Replays& replays_;
  HeldRanges& held_;
  JobCalls& calls_;
  size_t peers_bytes_ SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // what stayed for them from the first one on
};

}  // namespace spillway::interposer
