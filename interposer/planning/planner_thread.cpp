#include "interposer/planning/planner_thread.h"

#include <stdio.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/pause.h"
#include "base/quiet_thread.h"
#include "base/units.h"
#include "interposer/config/config.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/turn_gate.h"
#include "interposer/planning/agent_session.h"
#include "interposer/planning/device_model.h"
#include "interposer/planning/driver_section.h"
#include "interposer/planning/job_key.h"
#include "interposer/planning/link_measurement.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::interposer {

using base::MutexLock;
using base::Pause;
using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

namespace {

constexpr long kPauseWhileRecordingNs = 1'000'000;
constexpr long kPauseNs = 20'000'000;
constexpr std::int64_t kWholeLink = 1000;

PlanStore* Store() {
  static PlanStore* const store = new PlanStore(ProcessConfig().plan_store_path);
  return store;
}

const scheduler::Strategy* ChosenStrategy() {
  const std::string& name = ProcessConfig().strategy;
  const scheduler::Strategy* const own = scheduler::FindStrategy(scheduler::kDefaultStrategy);
  if (name.empty()) return own;
  const scheduler::Strategy* const chosen = scheduler::FindStrategy(name);
  static constinit std::atomic<bool> said{false};
  if (!chosen && !said.exchange(true))
    fprintf(stderr, "spillway: SPILLWAY_STRATEGY=%s names no strategy; it is ignored\n",
            name.c_str());
  return chosen ? chosen : own;
}

std::string NameOf(int device) {
  char name[256] = "";
  Driver().cuDeviceGetName(name, sizeof name, device);
  return name;
}

// Of the first device, if asked for.
EventLog* EventsOf(int device) {
  const std::string& path = ProcessConfig().events_path;
  return path.empty() || device != 0 ? nullptr : new EventLog(path.c_str());
}

PlanSource* Elsewhere() {
  AgentSession* const session = AgentSession::Instance();
  return session ? session->planner() : nullptr;
}

// The agent is asked for earlier plans only if the job's own store has none.
PipelineOptions OptionsFor(int device) {
  const std::string name = NameOf(device);
  PipelineOptions options = {.strategy = ChosenStrategy(),
                             .device = DeviceModelFor(name).model,
                             .store = Store(),
                             .job_key = JobKey(name, ProcessConfig().repeats_kernels),
                             .events = EventsOf(device),
                             .elsewhere = Elsewhere(),
                             .device_number = device};
  if (options.elsewhere && !Store()->Has(options.job_key))
    options.recalled = options.elsewhere->Recall(device, options.job_key);
  return options;
}

}  // namespace

class PlannerThread::Job final : public PlannedJob, public RecordListener {
 public:
  Job(PlannerThread* planner_thread, JobMemory* memory)
      : planner_thread_(planner_thread),
        memory_(memory),
        pipeline_(this, OptionsFor(memory->device())) {}

  Recorder& recorder() override { return memory_->recording().recorder(); }
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) override {
    memory_->plan().Adopt(std::move(plan));
  }
  void BeginRecording() override { memory_->recording().BeginRecording(); }
  void NoteDropped(std::int64_t planned_ns, std::int64_t without_ns) override {
    if (JobTrace::IsOn()) memory_->plan().TraceDropped(planned_ns, without_ns);
  }
  bool Parks() override { return memory_->plan().Parks(); }
  std::int64_t BudgetBytes() override {
    return static_cast<std::int64_t>(memory_->grants().budget_to_plan_bytes());
  }
  std::int64_t PlannableBytes() override { return memory_->recording().PlannableBytes(); }
  bool MayReplay(std::uint64_t token) override { return memory_->proofs().MayReplay(token); }
  scheduler::TouchRoles RolesOf(std::uint64_t token) override {
    return memory_->learning().RolesOf(token);
  }
  std::int64_t LinkPermille() override { return memory_->grants().link_permille(); }
  void ServeEvents() override { planner_thread_->Serve(this); }

  JobMemory* memory() const { return memory_; }
  // Measures the link once if the device's name does not tell its speed.
  scheduler::DeviceModel MeasuredDevice(const scheduler::DeviceModel& assumed) {
    if (!device_) {
      const bool is_known = DeviceModelFor(NameOf(memory_->device())).is_known;
      device_ = is_known ? assumed : WithMeasuredLink(memory_, assumed).value_or(assumed);
    }
    to_host_bytes_per_second_ = static_cast<std::uint64_t>(device_->to_host_bytes_per_second);
    to_device_bytes_per_second_ = static_cast<std::uint64_t>(device_->to_device_bytes_per_second);
    return *device_;
  }
  scheduler::DeviceModel DeviceToPlanFor(const scheduler::DeviceModel& assumed) {
    scheduler::DeviceModel model = MeasuredDevice(assumed);
    for (std::int64_t* rate :
         {&model.to_host_bytes_per_second, &model.to_device_bytes_per_second,
          &model.to_host_both_bytes_per_second, &model.to_device_both_bytes_per_second})
      *rate = std::max<std::int64_t>(
          base::scale(*rate, memory_->grants().link_permille(), kWholeLink), 1);
    return model;
  }
  Pipeline& pipeline() { return pipeline_; }
  void IncludeIn(LearningFigures* all);

  Job* next = nullptr;
  bool is_over = false;  // guarded by the PlannerThread's lock

 private:
  PlannerThread* const planner_thread_;
  JobMemory* const memory_;
  Pipeline pipeline_;
  std::optional<scheduler::DeviceModel> device_;  // guarded by the PlannerThread's lock
  std::atomic<std::uint64_t> to_host_bytes_per_second_{0}, to_device_bytes_per_second_{0};
};

PlannerThread& PlannerThread::Instance() {
  static constinit PlannerThread planner_thread;
  return planner_thread;
}

void PlannerThread::Attach(JobMemory* memory) {
  if (ProcessConfig().learn == LearnChoice::kOff) return;
  auto* const job = new Job(this, memory);
  {
    const MutexLock lock(mutex_);
    job->next = jobs_.load();
    WatchExit();
    jobs_.store(job, std::memory_order_release);
  }
  const bool begins_at_once =
      job->pipeline().KnowsEarlierRuns() || !ProcessConfig().events_path.empty();
  memory->recording().recorder().Attach(job, begins_at_once);
}

void PlannerThread::Detach(JobMemory* memory) {
  const MutexLock lock(mutex_);
  for (Job* job = jobs_.load(); job; job = job->next) {
    if (job->memory() != memory) continue;
    job->is_over = true;
    memory->recording().recorder().End();
    memory->recording().recorder().StopNotifying();
  }
}

void PlannerThread::Serve(Job* job) {
  if (ProcessConfig().learn == LearnChoice::kWait) return ServeHere(job);
  job->recorder().StopNotifying();
  StartThread();
}

// A thread that is already here will see this thread's events, or the next call will.
void PlannerThread::ServeHere(Job* job) {
  if (runs_here_.exchange(true)) return;
  {
    const RelaxedCapture relaxed(CapturesGoOn());
    while (TakeTurn(job, 0)) {
    }
  }
  runs_here_.store(false);
}

bool PlannerThread::TakeTurn(Job* job, std::uint64_t now_ns) {
  std::optional<Pipeline::Answer> answer;
  for (;;) {
    std::optional<Pipeline::Request> request;
    bool more = false;
    {
      const DriverSection section;
      const MutexLock lock(mutex_);
      if (!section.may_call() || job->is_over) return false;
      const CurrentContext current(job->memory()->context());
      if (answer) job->pipeline().Take(*answer);
      request = job->pipeline().Collect(now_ns, &more);
      if (request) request->asked.device = job->DeviceToPlanFor(request->asked.device);
    }
    if (!request) return more;
    answer = Pipeline::Solve(*request);
  }
}

void PlannerThread::StartThread() {
  if (thread_started_.exchange(true)) return;
  base::StartDetachedThread("spillway", &ThreadMain, this, std::size_t{8} << 20);
}

void* PlannerThread::ThreadMain(void* planner_thread) {
  static_cast<PlannerThread*>(planner_thread)->Run();
  return nullptr;
}

void PlannerThread::Run() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Driver().cuThreadExchangeStreamCaptureMode(&mode);
  while (!ThreadsMustEnd()) {
    bool more = false, is_recording = false;
    // No call comes in while the job waits for its turn, so there is nothing to learn.
    if (TurnGate::Instance().IsHeld()) {
      Pause(kPauseNs);
      continue;
    }
    for (Job* job = jobs_.load(std::memory_order_acquire); job; job = job->next) {
      more = TakeTurn(job, base::MonotonicNs()) || more;
      is_recording = job->pipeline().IsRecording() || is_recording;
    }
    if (!more) Pause(is_recording ? kPauseWhileRecordingNs : kPauseNs);
  }
}

void PlannerThread::Job::IncludeIn(LearningFigures* all) {
  const PipelineCounts& counts = pipeline_.counts();
  all->recorded_events += recorder().recorded_events();
  all->dropped_events += recorder().dropped_events();
  all->iterations_followed += counts.iterations_followed;
  all->plans_adopted += counts.plans_adopted;
  all->plans_from_store += counts.plans_from_store;
  all->plans_from_agent += counts.plans_from_agent;
  all->plans_refused += counts.plans_refused;
  all->plans_invalid += counts.plans_invalid;
  all->plans_dropped += counts.plans_dropped;
  all->planning_ns += counts.planning_ns;
  if (const char* const why = counts.not_planned_because) all->not_planned_because = why;
  if (counts.without_plan_iteration_ns != 0)
    all->without_plan_iteration_ns = counts.without_plan_iteration_ns;
  if (counts.planned_at_iteration == 0 || all->planned_at_iteration != 0) return;
  all->planned_at_iteration = counts.planned_at_iteration;
  all->predicted_iteration_ns = counts.predicted_iteration_ns;
  const KnownEffects& effects = counts.effects;
  all->effects = {effects.operations, effects.repeatable_operations, effects.documented,
                  effects.measured, effects.unknown};
  all->lower_bound_ns = counts.lower_bound_ns;
  all->to_host_bytes_per_second = to_host_bytes_per_second_;
  all->to_device_bytes_per_second = to_device_bytes_per_second_;
  all->measured_iteration_ns = counts.measured_iteration_ns;
}

const PipelineCounts* PlannerThread::CountsOf(const JobMemory* memory) const {
  for (Job* job = jobs_.load(std::memory_order_acquire); job; job = job->next) {
    if (job->memory() == memory) return &job->pipeline().counts();
  }
  return nullptr;
}

LearningFigures PlannerThread::Read() const {
  LearningFigures all;
  for (Job* job = jobs_.load(std::memory_order_acquire); job; job = job->next) job->IncludeIn(&all);
  return all;
}

}  // namespace spillway::interposer
