// Wires the rooms together: which job's memory a call belongs to.
//
// Called by the hooks on any thread. A JobMemory is made at the first allocation in a context whose device has
// virtual memory management; it lives until the process ends, also when its context is destroyed, so that the report
// can still read it. One context is managed at a time; allocations of others pass through and are counted.
//
// Invariants
//  1. Job() costs one load; it makes nothing.
//  2. Nothing here runs before the program's first allocation.
//  3. After exit began no call is made to the driver but those that the program itself makes.
#pragma once

#include <atomic>

#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

namespace internal {
extern std::atomic<JobMemory*> job;
}

// The job's memory, or null before its first allocation.
inline JobMemory* Job() { return internal::job.load(std::memory_order_acquire); }

// The job's memory for an allocation in the calling thread's current context: made if it is the first; null when
// the allocation is not for us to manage.
JobMemory* JobForAllocation();

// The managed context, or the primary context that it is, is about to be destroyed.
void ContextGoesAway(CUcontext context);
void ContextWentAway(CUcontext context);
void PrimaryContextGoesAway(CUdevice device);
// After a release: the primary context may have gone with its last user.
void PrimaryContextReleased(CUdevice device);

// The device memory that the program may know of.
size_t BudgetBytes(size_t device_bytes);

}  // namespace spillway::interposer
