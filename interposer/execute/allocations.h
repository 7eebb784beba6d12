// Allocates and frees the job's memory.
//
// An allocation is granted when it can be used: within the budget, or beyond it while the host can
// hold what must then be evicted.
//
// Invariants
//  1. Freed memory serves another allocation only after the work enqueued before the free. A free
//     waits for work whose effects the program could see without a call. All other work is complete
//     before the program can tell (deferred_waits.h).
//  2. A request answered with out of memory would not have had room. After a fault the answer is
//     the context's own error instead.
// Never: waits with the state lock held.
#pragma once

#include <cstddef>

#include "interposer/execute/arenas.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/free_waits.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"

namespace spillway::interposer {

class Allocations {
 public:
  Allocations(JobState& state, CallRecorder& recording, Arenas& arenas, Parking& parking,
              Eviction& eviction, Restores& restores, DeferredFrees& frees, Replays& replays,
              FreeWaits& free_waits)
      : state_(state),
        recording_(recording),
        arenas_(arenas),
        parking_(parking),
        eviction_(eviction),
        restores_(restores),
        frees_(frees),
        replays_(replays),
        free_waits_(free_waits) {}

  CUresult Allocate(size_t bytes, CUdeviceptr* out);
  // False when the address is not the base of a managed allocation: the driver frees it.
  // `is_pooled`: it came from a memory pool, where the driver's free does not wait.
  bool Free(CUdeviceptr base, bool is_pooled = false);
  bool FreeAsync(CUdeviceptr base, StreamName stream);

  bool HasRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  // Enters a range into the books: the recorder, the plan and the ledger know it from now on.
  void Know(Range* range) SPILLWAY_REQUIRES(kStateLock);

 private:
  CUresult AllocateRange(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult AllocateSmall(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool MustAwaitRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  void AwaitRoomFor(size_t size_bytes, bool even_held) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult AwaitMemory(Range* range) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Range* NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed)
      SPILLWAY_REQUIRES(kStateLock);
  CUresult AllocateArena(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Null when refused.
  const Arena* NewArena(size_t bytes) SPILLWAY_REQUIRES(kMakingLock, kStateLock);
  CUresult Refused() SPILLWAY_REQUIRES(kStateLock);
  bool Admits(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  bool FitsBudget(size_t size_bytes) const SPILLWAY_REQUIRES(kStateLock);
  bool FreeAtOnce(CUdeviceptr base, bool waits, bool* is_ours) SPILLWAY_EXCLUDES(kStateLock);
  void FreeOne(Allocation* found, UseList busy, const StreamName* stream)
      SPILLWAY_REQUIRES(kStateLock);
  void FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits, bool* is_ours)
      SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  CallRecorder& recording_;
  Arenas& arenas_;
  Parking& parking_;
  Eviction& eviction_;
  Restores& restores_;
  DeferredFrees& frees_;
  Replays& replays_;
  FreeWaits& free_waits_;
};

}  // namespace spillway::interposer
