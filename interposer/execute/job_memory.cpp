#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

JobMemory::JobMemory(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes,
                     ParkChoice park, LearnChoice learn)
    : state_(context, device, budget_bytes, host_limit_bytes, park, learn),
      parking_(state_, waits_, scan_, park) {}

void JobMemory::ReleaseAll() {
  state_.trace.Release();
  const MakingLock making(state_.locks);
  const StateLock lock(state_.locks);
  while (Slab* slab = state_.slabs.TakeAny())
    state_.residency.UnmapAndGive(slab->plan.base, kGranuleBytes, &slab->chunks);
  for (const std::uint64_t id : state_.recompute_records.All())
    state_.recompute_records.Forget(state_.recompute_records.Find(id));
  state_.replay_stream = nullptr;
  scratch_.Release();
  state_.residency.ReleaseAll();
  waits_.Release();
  state_.timeline.Reset();
}

}  // namespace spillway::interposer
