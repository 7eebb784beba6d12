#include "interposer/execute/job_state.h"

#include "interposer/driver/device_attribute.h"
#include "interposer/execute/state/arena.h"

namespace spillway::interposer {

JobState::JobState(CUcontext the_context, int the_device, size_t budget_bytes,
                   size_t host_limit_bytes, ParkChoice park, LearnChoice learn)
    : context(the_context),
      device(the_device),
      has_pageable_access(driver::HasAttribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)),
      recorder(learn),
      trace(context, device),
      timeline(context),
      budget(budget_bytes, &locks, &counters, &calls),
      residency(device, budget.bytes(), host_limit_bytes, park != ParkChoice::kOff, &timeline,
                &counters, &trace),
      slabs(&ledger, &timeline),
      pointer_safety(park, residency.host().mappable()),
      host_grant(host_limit_bytes, {.locks = &locks,
                                    .counters = &counters,
                                    .calls = &calls,
                                    .budget = &budget,
                                    .pool = &residency.host(),
                                    .pointer_safety = &pointer_safety}) {}

Allocation* JobState::FindUsable(CUdeviceptr address) {
  Allocation* const found = ledger.Find(address);
  return found && !static_cast<Tracked*>(found)->free_is_due ? found : nullptr;
}

Allocation* JobState::FindBase(CUdeviceptr base) {
  Allocation* const found = FindUsable(base);
  if (!found || found->base != base) return nullptr;
  const Arena* const arena = ArenaOf(found);
  return arena && arena->base != base ? nullptr : found;
}

CUresult JobState::OutOfMemory() const {
  if (residency.copies().spilled().IsLost()) return CUDA_ERROR_LAUNCH_FAILED;
  const CUresult health = residency.copies().Health();
  return health == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : health;
}

CUresult JobState::Health() const {
  const CUresult fault = timeline.fault();
  if (fault != CUDA_SUCCESS) return fault;
  if (timeline.AllKnownDone() && !promises.HasUnseenWork()) return CUDA_SUCCESS;
  return residency.copies().Health();
}

}  // namespace spillway::interposer
