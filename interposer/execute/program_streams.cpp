#include "interposer/execute/program_streams.h"

#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

std::vector<Use> ProgramStreams::IssuedOn(StreamName stream) {
  StreamState* state = state_.timeline.Known(stream);
  if (!state) {
    const StateLock lock(state_.locks);
    state = state_.timeline.Of(stream);
  }
  return {{state, Timeline::IssuedOn(state)}};
}

std::vector<Use> ProgramStreams::IssuedIn(CUcontext context) {
  if (!ordering_rules::kAnswersTakeTheLock) return state_.timeline.IssuedIn(context);
  const StateLock lock(state_.locks);
  return state_.timeline.IssuedIn(context);
}

void ProgramStreams::Completed(const std::vector<Use>& uses) {
  for (Use use : uses) Timeline::Completed(use.stream, use.sequence);
}

void ProgramStreams::Waited() {
  eviction_.GiveBackSpare();
  state_.trace.Poll();
  if (state_.recorder.IsRecording()) state_.recorder.Synchronized();
  state_.recorder.Settle();
}

void ProgramStreams::AboutToWait(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.AboutToWait(state_.timeline.Of(stream));
}

void ProgramStreams::StreamDestroyed(CUstream stream) {
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.Destroyed(stream);
}

void ProgramStreams::TakeCheckpoint(StreamName stream) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.TakeCheckpoint(state_.timeline.Of(stream));
}

void ProgramStreams::TakeCheckpoints() {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.timeline.TakeCheckpoints();
}

}  // namespace spillway::interposer
