// The program's own virtual memory (cuMemCreate, cuMemMap), moved like any other.
//
// Called by the hooks of these functions, one at a time (own_mappings.h has their lock). Ranges at
// the program's addresses are in the ledger, and leave and return as all ranges do.
//
// The program's handle is the memory's name only: memory that was away has another handle behind
// it. So a range of this kind is one chunk, made as the program asked for it. What needs the handle
// itself (an export, another device's access, a multicast) pins the range for good.
//
// Invariants
//  1. Such a range is mapped where the program has mapped it, or nowhere. Unmapped by the program,
//     but not yet released, it waits at addresses of ours.
//  2. A pinned range keeps its chunk, whose handle serves calls of the program.
//  3. Ranges next to each other are pieces of a run, which moves as a whole (runs.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "interposer/driver/chunk.h"
#include "interposer/execute/allocations.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/held_ranges.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/runs.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class OwnMemory {
 public:
  OwnMemory(JobState& state, Waits& waits, Runs& runs, Parking& parking, Restores& restores,
            DeferredFrees& frees, Replays& replays, Allocations& allocations, HeldRanges& held)
      : state_(state),
        waits_(waits),
        runs_(runs),
        parking_(parking),
        restores_(restores),
        frees_(frees),
        replays_(replays),
        allocations_(allocations),
        held_(held) {}

  // Memory of one handle that the program has just mapped and may use from now on. It was charged
  // (Unmovable::kOwnMapping).
  void Adopt(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
             const OwnMemoryKind& kind) SPILLWAY_EXCLUDES(kStateLock);
  // Maps the range at `to` instead; 0: at addresses of ours. `base` becomes the new address. No
  // work of the program uses it. CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_READY if work that waits
  // for the program uses it all the same, or the driver's answer.
  CUresult Move(CUdeviceptr* base, CUdeviceptr to) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Its place in a run has changed. Its run is then held, and comes back where it is away.
  // CUDA_ERROR_OUT_OF_MEMORY: it is as before.
  CUresult SetRun(CUdeviceptr base, RunPiece kind) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The job is idle, or its calls wait for its turn: its runs may leave, until a call uses them.
  void ReleaseRuns() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // On the device until EndPin(owner) or the memory's end, with the run that it is in. `handle`: of
  // its chunk, meanwhile.
  CUresult Pin(std::uint64_t owner, CUdeviceptr base, Unmovable why,
               CUmemGenericAllocationHandle* handle) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void EndPin(std::uint64_t owner) { held_.EndHold(owner); }
  // Before the job ends: it is charged memory of the program's again, mapped where the program has
  // mapped it. Answers the driver's handle; 0: its bytes are lost.
  CUmemGenericAllocationHandle Disown(CUdeviceptr base) SPILLWAY_EXCLUDES(kStateLock);
  // It ends, and its memory goes back to the driver. Errors as of Move.
  CUresult End(CUdeviceptr base) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

 private:
  CUresult WhenIdle(CUdeviceptr base, bool needs_device, base::FunctionRef<void(Range*)> act)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool BringBack(Range* range) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void AwaitReady(Range* range) SPILLWAY_EXCLUDES(kStateLock);
  CUresult MoveNow(Range* range, CUdeviceptr to) SPILLWAY_REQUIRES(kStateLock);
  bool IsIdle(Range* range, Waits::Awaited* next) SPILLWAY_REQUIRES(kStateLock);
  void ForgetInBooks(Range* range) SPILLWAY_REQUIRES(kStateLock);
  void EndInBooks(Range* range) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Runs& runs_;
  Parking& parking_;
  Restores& restores_;
  DeferredFrees& frees_;
  Replays& replays_;
  Allocations& allocations_;
  HeldRanges& held_;
};

}  // namespace spillway::interposer
