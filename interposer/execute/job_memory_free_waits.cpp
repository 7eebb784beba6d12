// Frees that a program takes for a wait. See Note [What a free promises] in free_promises.h.
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

// What another device or process works on is in nobody's books here: then all of it shows. While a stream captures its
// context cannot be waited for.
void JobMemory::AwaitWhatShows(CUdeviceptr freed) {
  if (!ordering_rules::kFreesAwaitWhatShows) return;
  const bool all = HasPeers() || VisibleWork::shows_everything();
  FreePromises::Awaited awaited;
  {
    const MutexLock lock(state_);
    if (!FindBase(freed)) return;
    awaited = promises_.EventsOf(all ? timeline_.Unfinished() : timeline_.UnfinishedThatShow(), context_);
  }
  const Blocked blocked;
  if (!CapturesGoOn() && promises_.TakeUnseenWork()) Driver().cuCtxSynchronize();
  FreePromises::Await(awaited, CapturesGoOn());
}

bool JobMemory::AwaitPromises() {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(context_);
  FreePromises::Awaited awaited;
  {
    const MutexLock lock(state_);
    awaited = promises_.EventsOf(promises_.Open(), context_);
  }
  const Blocked blocked;
  FreePromises::Await(awaited, CapturesGoOn());
  return !awaited.empty();
}

// A capturing stream's next operation is written down in a graph.
void JobMemory::KeepPromises(StreamName stream) {
  const StreamState* const known = timeline_.Known(stream);
  if (known && !promises_.Concern(known)) return;
  const RelaxedCapture relaxed(true);
  if (CapturesGoOn() && Captures(stream)) return;
  const MutexLock lock(state_);
  StreamState* const state = timeline_.Of(stream);
  if (!state->foreign) promises_.BeforeNext(state, false);
}

void JobMemory::Shows(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const MutexLock lock(state_);
  StreamState* const state = timeline_.Of(stream);
  if (!state->foreign) timeline_.Show(timeline_.Issue(state));
}

}  // namespace spillway::interposer
