// What the pipeline needs of a job's memory: its events, and somebody who follows plans.
//
// JobMemory's place in production (planner thread.cpp); tests have one of their own. Called with
// the planner thread's lock held.
#pragma once

#include <cstdint>
#include <memory>

#include "interposer/record/recorder.h"
#include "scheduler/plan/live_plan.h"

namespace spillway::interposer {

class PlannedJob {
 public:
  virtual Recorder& recorder() = 0;
  // From the next iteration on the job follows this plan.
  virtual void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) = 0;
  // Calls Recorder::Begin with what is alive.
  virtual void BeginRecording() = 0;
  virtual std::int64_t BudgetBytes() = 0;
  // The budget, less what cannot move now.
  virtual std::int64_t PlannableBytes() = 0;
  // Has an operation with this token (scheduler::TokenOf of its event, so of its complete shape)
  // been run again and given the same bytes? Asked for many at once, each time that a plan is made.
  virtual bool MayReplay(std::uint64_t /*token*/) { return false; }
  // A plan was no better than none: its iterations took `planned_ns`, and without it `without_ns`;
  // 0: not known.
  virtual void NoteDropped(std::int64_t /*planned_ns*/, std::int64_t /*without_ns*/) {}
  // Memory moves only while the device is idle, and plans are not carried out: times of now are not
  // those of later.
  virtual bool Parks() { return false; }
  // The job's part of the link, in thousandths.
  virtual std::int64_t LinkPermille() { return 1000; }

 protected:
  ~PlannedJob() = default;
};

}  // namespace spillway::interposer
