// Runs each job's pipeline, from its events to its plan, beside the program.
//
// Threads: runtime calls Attach and Detach with its lock held. The recorder calls ServeEvents on
// the program's threads. With LearnChoice::kWait the calling threads run the pipelines. Otherwise
// the planner thread does. It starts with the first job that wants more than its budget.
//
// The planner thread blocks all signals. It takes the locks of the job's memory like any calling
// thread. It calls the driver only to read events, for link_measurement.h, and in
// PlanFollower::Adopt. A forked child has no planner thread.
// Invariants
//  1. After exit began nothing here calls the driver. The exit waits for a call in progress.
//  2. After Detach the job's memory is not touched. Its figures stay readable for ever.
//  3. No lock is held while a plan is made.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "interposer/execute/job_memory.h"
#include "interposer/planning/pipeline.h"

namespace spillway::interposer {

struct LearningFigures {
  std::uint64_t recorded_events = 0;
  std::uint64_t dropped_events = 0;
  std::uint64_t iterations_followed = 0;
  std::uint64_t plans_adopted = 0;
  std::uint64_t plans_from_store = 0;
  std::uint64_t plans_from_agent = 0;
  std::uint64_t plans_refused = 0;
  std::uint64_t plans_invalid = 0;
  std::uint64_t plans_dropped = 0;         // they were no better than none
  std::uint64_t planned_at_iteration = 0;  // of the last planned job, like the figures below
  std::uint64_t planning_ns = 0;
  std::uint64_t predicted_iteration_ns = 0;
  std::uint64_t to_host_bytes_per_second = 0;  // the link's rate that plans assume
  std::uint64_t to_device_bytes_per_second = 0;
  std::uint64_t lower_bound_ns = 0;
  std::uint64_t measured_iteration_ns = 0;
  std::uint64_t without_plan_iteration_ns = 0;
  struct {
    std::uint64_t operations = 0, repeatable_operations = 0;
    std::uint64_t documented = 0, measured = 0, unknown = 0;
  } effects;
  const char* not_planned_because = nullptr;  // of the last job without a plan
};

class PlannerThread {
 public:
  static PlannerThread& Instance();

  void Attach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  void Detach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);

  // Takes no lock; any thread, also at exit.
  LearningFigures Read() const;
  // For the job with this memory, attached or not. Takes no lock. Null: the job is not learned.
  const PipelineCounts* CountsOf(const JobMemory* memory) const;

 private:
  class Job;

  void Serve(Job* job);
  void ServeHere(Job* job);
  bool TakeTurn(Job* job, std::uint64_t now_ns) SPILLWAY_EXCLUDES(mutex_);
  void StartThread();
  static void* ThreadMain(void* planner_thread);
  void Run();

  std::atomic<Job*> jobs_{nullptr};
  std::atomic<bool> thread_started_{false};
  std::atomic<bool> runs_here_{false};
  base::Mutex mutex_{base::LockRank::kPlannerThread};
};

}  // namespace spillway::interposer
