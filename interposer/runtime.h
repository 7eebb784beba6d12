// Wires the rooms together: which job's memory a call belongs to.
//
// Called by the hooks on any thread. A JobMemory is made for each device with virtual memory
// management, at the first allocation on it; it lives until the process ends, also when its context
// is destroyed, so that the report can still read it. One context per device is managed at a time;
// allocations of others pass through and are counted.
//
// Invariants
//  1. Jobs() costs a load per device in use; it makes nothing.
//  2. Nothing here runs before the program's first allocation.
//  3. After exit began no call is made to the driver but those that the program itself makes.
#pragma once

#include <atomic>

#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// The job's memory on each device, by the device's number. A place is empty until the first
// allocation on the device, and after its context has ended.
class JobList {
 public:
  static constexpr int kMost = 64;
  // The first one from `place` on, which is moved behind it; null behind the last.
  JobMemory* Next(int* place) const {
    while (*place < size_.load(std::memory_order_acquire)) {
      if (JobMemory* job = At((*place)++)) return job;
    }
    return nullptr;
  }
  JobMemory* At(CUdevice device) const {
    return device >= 0 && device < kMost ? jobs_[device].load(std::memory_order_acquire) : nullptr;
  }
  // Under the runtime's lock.
  void Set(CUdevice device, JobMemory* job) {
    jobs_[device].store(job, std::memory_order_release);
    if (size_.load(std::memory_order_relaxed) <= device)
      size_.store(device + 1, std::memory_order_release);
  }

 private:
  std::atomic<int> size_{0};
  std::atomic<JobMemory*> jobs_[kMost] = {};
};

namespace internal {
extern JobList jobs;
}

inline const JobList& Jobs() { return internal::jobs; }
// The first that `accepts` takes; the others are not asked. Null when it takes none.
template <class Accepts>
JobMemory* FindJob(Accepts accepts) {
  int place = 0;
  while (JobMemory* job = Jobs().Next(&place)) {
    if (accepts(job)) return job;
  }
  return nullptr;
}
template <class Visit>
void ForEachJob(Visit visit) {
  int place = 0;
  while (JobMemory* job = Jobs().Next(&place)) visit(job);
}
// The job that manages this very context; null when none does.
JobMemory* JobIn(CUcontext context);
// The job whose memory the address is, or was; null when it is none's.
JobMemory* JobOwning(CUdeviceptr address);
// The job of the device, or of the calling thread's current device; null before its first
// allocation there.
JobMemory* JobOf(CUdevice device);
JobMemory* JobHere();

// The job's memory for an allocation in the calling thread's current context: made if it is the
// device's first; null when the allocation is not for us to manage.
JobMemory* JobForAllocation();

// A device variable: for the jobs that there are, and those that come. `module`: the handle of the
// module or library that it belongs to.
void KnowGlobal(CUdeviceptr base, size_t bytes, const void* module);
// The module or library is about to be unloaded: its variables' places may serve others.
void ForgetGlobals(const void* module);

// The managed context, or the primary context that it is, is about to be destroyed.
void ContextGoesAway(CUcontext context);
void ContextWentAway(CUcontext context);
void PrimaryContextGoesAway(CUdevice device);
// After a release: the primary context may have gone with its last user.
void PrimaryContextReleased(CUdevice device);

// What the program is told of a device's memory, by all libraries. Its size never changes while the
// process lives: it is what the launcher allows. `job` may be null.
// (docs/decisions/0010-what-free-memory-means.md)
size_t BudgetBytes(size_t device_bytes);
struct DeviceMemory {
  size_t free_bytes = 0, total_bytes = 0;
};
DeviceMemory ShownMemory(JobMemory* job, size_t device_free_bytes, size_t device_bytes);

}  // namespace spillway::interposer
