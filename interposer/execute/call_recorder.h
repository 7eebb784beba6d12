// Reports a call to the recorder, the trace and the plan: its shape, touches and duration.
//
// Called around calls on the program's threads, without a lock unless a function says so. Owns
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

  // The ranges that the call names and reaches.
  static std::span<Range* const> RangesOf(const TouchSet& set);
  static base::InlineVector<RecordedTouch, 32> TouchesOf(const TouchSet& set, Effect effect);
  static Shape ShapeOf(const TouchSet& set);

  void BeginSample(Effect effect, TouchSet* set);
  void BeginTraced(TouchSet* set);
  void EndTraced(const TouchSet& set, Effect effect);
  void Record(const TouchSet& set, Effect effect);

  // From the first allocation beyond the budget on. `more_bytes`: of one about to be made.
  void RecordIfOverBudget(size_t more_bytes) SPILLWAY_REQUIRES(kStateLock);
  // Records from now on, however much memory the job wants.
  void BeginRecording() SPILLWAY_EXCLUDES(kStateLock);
  std::int64_t PlannableBytes() SPILLWAY_EXCLUDES(kStateLock);  // the budget less unmovable memory
  Recorder& recorder() { return state_.recorder; }

 private:
  void BeginRecordingLive() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
};

}  // namespace spillway::interposer
