// Does what is to be done beside the program: runs each job's pipeline, from its events to its
// plan.
//
// Attach and Detach are called by runtime, with its lock held; EventsAreThere by the recorder on
// the program's threads. One instance, never destroyed. With LearnChoice::kWait pipelines run in
// the calling threads; else a thread of our own does it, which starts with the first job that wants
// more than its budget, and not before.
//
// The thread: all signals blocked; it takes the locks of the job's memory like any calling thread,
// and the driver's calls that it makes are those that read events, those of link_measurement.h, and
// those of PlanFollower::Adopt. In a forked child there is none.
//
// Invariants
//  1. After exit began neither thread nor pipeline calls the driver; the exit waits for a call in
//  progress.
//  2. After Detach the job's memory is not touched. Its figures can be read for ever.
//  3. No lock is held while a plan is made.
#pragma once

#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "interposer/execute/job_memory.h"
#include "interposer/planning/pipeline.h"

namespace spillway::interposer {

// Of all jobs together, for the report.
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
  std::uint64_t planned_at_iteration = 0;  // the last job's that was planned, like all that follow
  std::uint64_t planning_ns = 0;
  std::uint64_t predicted_iteration_ns = 0;
  std::uint64_t to_host_bytes_per_second = 0;  // of the link, as plans assume
  std::uint64_t to_device_bytes_per_second = 0;
  std::uint64_t lower_bound_ns = 0;
  std::uint64_t measured_iteration_ns = 0;
  std::uint64_t without_plan_iteration_ns = 0;
  const char* not_planned_because = nullptr;  // the last job's that has no plan
};

class PlannerThread {
 public:
  static PlannerThread& Instance();

  // Before the job's first allocation.
  void Attach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  // Its context is about to go.
  void Detach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);

  // Takes no lock; any thread, also at exit.
  LearningFigures Read() const;
  // Of the job with this memory, while it is attached or after; likewise. Null: it is not learned.
  const PipelineCounts* CountsOf(const JobMemory* memory) const;

 private:
  class Job;

  void Serve(Job* job);
  void ServeHere(Job* job);
  bool TakeTurn(Job* job, std::uint64_t now_ns) SPILLWAY_EXCLUDES(mutex_);
  void StartThread();
  static void* ThreadMain(void* planner_thread);
  void Run();

  // Synchronises itself.
  std::atomic<Job*> jobs_{nullptr};  // newest first; only ever longer
  std::atomic<bool> thread_started_{false};
  std::atomic<bool> runs_here_{false};  // a calling thread does what the planner thread would
  base::Mutex mutex_{base::LockRank::kPlannerThread};
};

}  // namespace spillway::interposer
