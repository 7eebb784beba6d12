// What the pipeline needs of a job's memory: its events, and a follower of plans.
//
// Called with the PlannerThread's lock held.
#pragma once

#include <cstdint>
#include <memory>

#include "interposer/record/recorder.h"
#include "scheduler/plan/live_plan.h"

namespace spillway::interposer {

class PlannedJob {
 public:
  virtual Recorder& recorder() = 0;
  virtual void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) = 0;
  // Calls Recorder::Begin with the live allocations.
  virtual void BeginRecording() = 0;
  virtual std::int64_t BudgetBytes() = 0;
  virtual std::int64_t PlannableBytes() = 0;
  // Whether an operation with this token (scheduler::TokenOf, so its complete shape) was run again
  // and gave equal bytes. Each planning asks this for many operations.
  virtual bool MayReplay(std::uint64_t /*token*/) { return false; }
  // What experiments have shown of an operation's touches; empty: nothing.
  virtual scheduler::TouchRoles RolesOf(std::uint64_t /*token*/) { return {}; }
  // A plan was no better than none. Durations of an iteration with and without it; 0: unknown.
  virtual void NoteDropped(std::int64_t /*planned_ns*/, std::int64_t /*without_ns*/) {}
  // While a job parks, no plan is carried out, and measured durations say nothing about later.
  virtual bool Parks() { return false; }
  // In thousandths.
  virtual std::int64_t LinkPermille() { return 1000; }

 protected:
  ~PlannedJob() = default;
};

}  // namespace spillway::interposer
