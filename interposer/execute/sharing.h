// Memory of the job that others use: other processes, which map it, and other devices. A device may
// use addresses that no call of ours names (in NCCL's kernels, say).
//
// Invariants
//  1. While another device may use all memory, all of it is resident: grants end at the budget.
//  2. Memory shared alone stays resident until its last user is denied or its hold ends.
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

  // Lets another device use all memory until DenyPeer, even where no call of ours names it.
  // CUDA_ERROR_PEER_ACCESS_UNSUPPORTED while more than the budget is allocated.
  CUresult AllowPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The same for one pool allocation, until its free at the latest. Opens its whole slab.
  CUresult AllowPeerAt(CUdeviceptr address, CUdevice peer)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  // Makes the allocation resident until EndHold(owner), and exports its memory.
  CUresult Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsShareable() SPILLWAY_EXCLUDES(kStateLock);

 private:
  void SetPeer(CUdevice peer, bool allowed) SPILLWAY_REQUIRES(kStateLock);
  bool SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) SPILLWAY_EXCLUDES(kStateLock);
  CUresult ShareRange(const Range& range, SharedMemory* out) SPILLWAY_REQUIRES(kStateLock);
  CUresult ShareResident(CUdeviceptr address, SharedMemory* out) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Restores& restores_;
  Replays& replays_;
  HeldRanges& held_;
  JobCalls& calls_;
  size_t peers_bytes_ SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // unmovable for them, from the first one on
};

}  // namespace spillway::interposer
