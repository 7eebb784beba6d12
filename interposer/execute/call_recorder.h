// What the recorder, the trace and the plan are told of a call: its shape, what it touches, how
// long it takes.
//
// Called around calls on the program's threads, without a lock but where a function says so. Owns
// nothing: the recorder and the trace are the job's. Never: waits.
#pragma once

#include <cstdint>
#include <span>

#include "base/inline_vector.h"
#include "interposer/execute/call_roles.h"
#include "interposer/execute/job_state.h"

namespace spillway::interposer {

class CallRecorder {
 public:
  explicit CallRecorder(JobState& state) : state_(state) {}

  // The ranges that the call names and reaches; what it does to them; what it is.
  static std::span<Range* const> RangesOf(const TouchSet& set);
  static base::InlineVector<RecordedTouch, 32> TouchesOf(const TouchSet& set, Effect effect);
  static Shape ShapeOf(const TouchSet& set);

  // After Begin, and in End.
  void BeginSample(Effect effect, TouchSet* set);
  void BeginTraced(TouchSet* set);
  void EndTraced(const TouchSet& set, Effect effect);
  void Record(const TouchSet& set, Effect effect);

  // Recording begins with the first allocation beyond the budget. `more_bytes`: of one that is
  // about to be made.
  void RecordIfItIsTime(size_t more_bytes) SPILLWAY_REQUIRES(kStateLock);
  // From now on what the job does is recorded, whatever it wants.
  void BeginRecording() SPILLWAY_EXCLUDES(kStateLock);
  std::int64_t PlannableBytes() SPILLWAY_EXCLUDES(kStateLock);  // the budget, less what cannot move
  Recorder& recorder() { return state_.recorder; }

 private:
  void BeginRecordingLive() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
};

}  // namespace spillway::interposer
