#include "interposer/execute/free_waits.h"

#include <vector>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

// Use by other devices and processes is not recorded here: with such users all unfinished work
// counts as visible.
UseList FreeWaits::UnfinishedVisible() {
  const bool all = state_.HasPeers() || VisibleWork::shows_everything();
  return all ? state_.timeline.Unfinished() : state_.timeline.UnfinishedVisible();
}

bool FreeWaits::MustAwait(bool visible_work) {
  if (state_.residency.parking()) return true;
  if (!visible_work || !ordering_rules::kFreesAwaitWhatShows) return false;
  return state_.promises.HasUnseenWork() || !UnfinishedVisible().empty();
}

// While a stream captures, its context cannot be waited for.
void FreeWaits::AwaitVisibleWork(CUdeviceptr freed) {
  if (!ordering_rules::kFreesAwaitWhatShows) return;
  DeferredWaits::Awaited awaited;
  {
    const StateLock lock(state_.locks);
    if (!state_.FindBase(freed)) return;
    awaited = state_.promises.EventsOf(UnfinishedVisible(), state_.context);
  }
  const BlockedThread blocked;
  if (!CapturesGoOn()) {
    state_.promises.AwaitUnseenWork(
        [this] { state_.timeline.NoteResult(Driver().cuCtxSynchronize()); });
  }
  DeferredWaits::Await(awaited, CapturesGoOn());
}

// The driver's free waits. Ours need not, where the uses of the freed memory and of reused memory
// are known. They are unknown while the job parks.
void FreeWaits::AwaitIfParking() {
  UseList unfinished;
  std::vector<CUevent> events;
  {
    const StateLock lock(state_.locks);
    if (!state_.residency.parking() || CapturesGoOn()) return;
    unfinished = state_.timeline.Unfinished();
    for (Use use : unfinished.items()) events.push_back(state_.timeline.EventFor(use));
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  for (size_t i = 0; i < events.size(); ++i)
    waits_.Await(unfinished.items()[i], events[i], StallCause::kIdle);
}

// A capturing stream's next operation only goes into a graph.
void FreeWaits::KeepPromises(StreamName stream) {
  const StreamState* const known = state_.timeline.Known(stream);
  if (known && !state_.promises.Concern(known)) return;
  const RelaxedCapture relaxed(true);
  if (CapturesGoOn() && IsCapturing(stream)) return;
  const StateLock lock(state_.locks);
  StreamState* const state = state_.timeline.Of(stream);
  if (!state->foreign) state_.promises.BeforeNext(state, false);
}

bool FreeWaits::AwaitPromises() {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  DeferredWaits::Awaited awaited;
  {
    const StateLock lock(state_.locks);
    awaited = state_.promises.EventsOf(state_.promises.Open(), state_.context);
  }
  const BlockedThread blocked;
  DeferredWaits::Await(awaited, CapturesGoOn());
  return !awaited.empty();
}

void FreeWaits::Shows(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const StateLock lock(state_.locks);
  StreamState* const state = state_.timeline.Of(stream);
  if (!state->foreign) state_.timeline.Show(state_.timeline.Issue(state));
}

}  // namespace spillway::interposer
