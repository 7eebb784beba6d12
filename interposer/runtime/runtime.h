// Wires the modules together, and finds the job's memory that a call belongs to.
//
// A JobMemory is made at the first allocation on each device with virtual memory management. It
// lives until the process ends, so that the report can read it. One context per device is managed
// at a time. Allocations in others pass through and are counted.
// Invariants
//  1. Jobs() costs one load per device in use, and makes nothing.
//  2. Nothing here runs before the program's first allocation.
//  3. After exit began, the driver is called only for the program's own calls.
#pragma once

#include <atomic>

#include "interposer/driver/device_budget.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

// The job's memory on each device, by device number. An entry is null before the first allocation
// there, and after its context has ended.
class JobList {
 public:
  static constexpr int kMost = 64;
  JobMemory* Next(int* place) const {
    while (*place < size_.load(std::memory_order_acquire)) {
      if (JobMemory* job = At((*place)++)) return job;
    }
    return nullptr;
  }
  JobMemory* At(CUdevice device) const {
    return device >= 0 && device < kMost ? jobs_[device].load(std::memory_order_acquire) : nullptr;
  }
  void Set(CUdevice device, JobMemory* job) {
    jobs_[device].store(job, std::memory_order_release);
    if (size_.load(std::memory_order_relaxed) <= device)
      size_.store(device + 1, std::memory_order_release);
    if (job) begun_.fetch_add(1);
  }
  unsigned begun() const { return begun_.load(); }

 private:
  std::atomic<int> size_{0};
  std::atomic<unsigned> begun_{0};
  std::atomic<JobMemory*> jobs_[kMost] = {};
};

namespace internal {
extern JobList jobs;
}

inline const JobList& Jobs() { return internal::jobs; }
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
// The job that manages exactly this context, or null.
JobMemory* JobIn(CUcontext context);
// The job whose memory contains or contained the address, or null.
JobMemory* JobOwning(CUdeviceptr address);
// The job of the device, or of the current device. Null before its first allocation.
JobMemory* JobOf(CUdevice device);
JobMemory* JobHere();

// The job for an allocation in the calling thread's current context, made at the device's first
// one. Null if the allocation is not ours to manage.
JobMemory* JobForAllocation();
// The job against whose budget an allocation in the current context counts: also one that is not
// ours to manage.
JobMemory* JobToCharge();

// Notes a device variable, for present and future jobs. `module`: its module or library.
void RegisterGlobal(CUdeviceptr base, size_t bytes, const void* module);
void ForgetGlobals(const void* module);

void BeforeContextDestroyed(CUcontext context);
void AfterContextDestroyed(CUcontext context);
void BeforePrimaryContextReset(CUdevice device);
// After a release: it may have destroyed the primary context.
void PrimaryContextReleased(CUdevice device);

// The device's memory as all libraries show it to the program. Its size is the budget without an
// agent (driver/device_budget.h) and never changes while the process lives. `job` may be null.
// (docs/decisions/0010-what-free-memory-means.md)
size_t BudgetBytes(const base::DeviceBudget& budget, size_t device_bytes);
struct DeviceMemory {
  size_t free_bytes = 0, total_bytes = 0;
};
DeviceMemory ShownMemory(JobMemory* job, const base::DeviceBudget& budget, size_t device_free_bytes,
                         size_t device_bytes);

}  // namespace spillway::interposer
