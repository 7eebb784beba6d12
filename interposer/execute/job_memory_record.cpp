// What the recorder is told of the job: allocations, calls with what they touch, waits.
#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

void JobMemory::Waited() {
  eviction_.GiveBackSpare();
  state_.trace.Poll();
  if (state_.recorder.IsRecording()) state_.recorder.Synchronized();
  state_.recorder.Settle();
}

}  // namespace spillway::interposer
