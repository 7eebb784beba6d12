// What the agent grants beside device memory: host memory, and the job's part of the link.
#include "base/clock.h"
#include "base/pause.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::Pause;
using driver::CurrentContext;
using driver::RelaxedCapture;

void JobMemory::SetHostLimit(size_t bytes) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.host_grant.SetLimit(bytes);
  state_.host_grant.UpdateLimits();
  state_.residency.GiveUpSpareCopies();
}

bool JobMemory::JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file) {
  const StateLock lock(state_.locks);
  return state_.residency.link().Join(terms_file, lanes_file, place.layout, place.slot);
}

}  // namespace spillway::interposer
