// Reports a call to the recorder, the trace and the plan: its shape, touches and duration.
//
// Called around calls, without a lock unless a function says so. Never: waits.
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

  // A call as the recorder and the plan see it.
  class Operation {
   public:
    Operation(const TouchSet& set, Effect effect);
    Shape shape() const { return shape_; }
    std::span<const RecordedTouch> touches() const { return {touches_.begin(), touches_.size()}; }

   private:
    bool Touches(std::uint64_t allocation) const;

    Shape shape_;
    base::InlineVector<RecordedTouch, 32> touches_;
  };

  void BeginSample(Effect effect, TouchSet* set);
  void BeginTraced(TouchSet* set);
  void EndTraced(const TouchSet& set, Effect effect);
  void Record(const TouchSet& set, Effect effect);

  // From the first allocation beyond the budget on. `more_bytes`: of one about to be made.
  void RecordIfOverBudget(size_t more_bytes) SPILLWAY_REQUIRES(kStateLock);
  void BeginRecording() SPILLWAY_EXCLUDES(kStateLock);
  std::int64_t PlannableBytes() SPILLWAY_EXCLUDES(kStateLock);  // the budget less unmovable memory
  Recorder& recorder() { return state_.recorder; }

 private:
  void BeginRecordingLive() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
};

}  // namespace spillway::interposer
