// Follows the node agent: says to it what this process uses, and makes what it grants the budgets
// of the process's jobs.
//
// Attach and Detach are called by runtime, with its lock held. There is an instance only where the
// launcher named an agent; it is never destroyed. Its first Attach starts two threads of its own,
// all signals blocked, that take the locks of the jobs' memory like any calling thread: one talks
// with the agent, so that a grant never waits for a plan being made; the other empties memory for a
// budget that became less (Grants::MeetBudget), so that the agent hears meanwhile what has been
// given back, and asks the devices of jobs that do nothing whether they are idle.
//
// Invariants
//  1. A budget is the grant, but never more than the launcher allows.
//  2. A job waits for the agent's first word in Attach, before its first allocation:
//  kAnswerPatienceNs for an agent that is there and
//     says nothing, kQueuePatienceNs in the queue. It does not wait for one that is not there, nor,
//     in the queue, for one that is gone and does not come back (LeaseClient).
//  3. Without an answer the launcher's budget stands until there is a grant; but from the moment on
//  in which a job that has begun says to
//     an agent what it holds it holds no more, until the agent grants, makes it wait or is gone, or
//     has granted nothing in time. A job that is refused, or was queued for too long, has no device
//     memory until there is one.
//  4. When the agent is gone the last grant stays.
//  5. After Detach the job's memory is not touched; after exit began nothing is, but that the agent
//  is told of the exit if that takes
//     no more than a moment.
//  6. Host memory likewise; the job's link share is its plans' and its copies'.
//  7. What the process holds when it exits stays its own until it has ended.
//  8. A thread that cannot be started is done without: the one that talks empties memory too;
//  without that one there is no agent.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "interposer/execute/job_memory.h"
#include "interposer/lease/lease_client.h"
#include "interposer/lease/notifier.h"
#include "interposer/planning/idleness.h"
#include "interposer/planning/remote_planner.h"
#include "interposer/planning/shrink_schedule.h"

namespace spillway::interposer {

class AgentSession final : public LeaseSubject, public LeaseConnector, public PlanWire {
 public:
  // Null where there is no agent to follow.
  static AgentSession* Instance();

  // Before the job's first allocation; waits.
  void Attach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  void Detach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  // Lets the agent plan; where it does not, or is gone, that has nothing.
  PlanSource* planner() { return &planner_; }

 private:
  // Admitted: its first grant comes when others have given back.
  enum class Standing : std::uint8_t { kAsking, kAlone, kQueued, kRejected, kAdmitted, kGranted };
  struct Device {
    JobMemory* memory = nullptr;  // null: its context has ended
    ShrinkSchedule shrink;
    std::int64_t own_budget_bytes = 0;
    std::int64_t granted_bytes = 0;
    std::int64_t granted_host_bytes = 0;
    std::int64_t link_permille = 1000;
    protocol::LinkPlace place;
    base::UniqueFd terms, lanes;  // none: it has no place
    Standing standing = Standing::kAsking;
    bool is_held_back = false;  // its budget is what it had when it told an agent so
    Idleness idleness;
    std::int64_t wanted_peak_bytes = 0;
    std::uint64_t grown_ns = 0;
  };

  explicit AgentSession(const std::string& address);

  DeviceUse Read(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void HoldGrowth(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void ReleaseGrowth(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void AgentStaysAway(std::uint32_t device, Absence how) override SPILLWAY_REQUIRES(mutex_);
  void SetHostLimit(const protocol::Grant& grant) override SPILLWAY_REQUIRES(mutex_);
  void SetBudget(const protocol::Grant& grant, std::int64_t deadline_ns) override
      SPILLWAY_REQUIRES(mutex_);
  void Admission(const protocol::Admission& admission) override SPILLWAY_REQUIRES(mutex_);
  std::int64_t MissingSlabBytes(std::uint32_t device) override;
  void SlabsCame(const protocol::Slabs& slabs, std::vector<base::UniqueFd> files) override;
  void DriverSlabsCame(const protocol::DriverSlabs& slabs,
                       std::vector<base::UniqueFd> files) override;
  std::vector<protocol::SlabName> HeldSlabs() override;
  std::vector<protocol::SlabName> TakeReturnedSlabs() override;
  void PlaceCame(const protocol::LinkPlace& place, base::UniqueFd terms,
                 base::UniqueFd lanes) override SPILLWAY_REQUIRES(mutex_);
  void PlanCame(const protocol::PlanReply& reply, std::vector<base::UniqueFd> files) override;
  void PlansRecalled(const protocol::RecalledPlans& recalled,
                     std::vector<base::UniqueFd> files) override;
  void SessionLost() override SPILLWAY_REQUIRES(mutex_);
  std::unique_ptr<protocol::Channel> Connect() override;
  bool Send(const protocol::AskPlan& ask, int file) override SPILLWAY_EXCLUDES(mutex_);
  bool Send(const protocol::RecallPlans& recall) override SPILLWAY_EXCLUDES(mutex_);

  Device* Find(std::uint32_t number) SPILLWAY_REQUIRES(mutex_);
  void Apply(Device* device) SPILLWAY_REQUIRES(mutex_);
  void Release(Device* device) SPILLWAY_REQUIRES(mutex_);
  static void AtExit(int status, void* session);
  void TellExit(int status) SPILLWAY_UNANALYSED;
  static bool MayGrow(const Device& device, std::uint64_t now_ns);
  static std::int64_t Wanted(Device* device, std::int64_t peak_bytes, std::uint64_t now_ns);
  void AwaitFirstWord(int number) SPILLWAY_EXCLUDES(mutex_);
  Standing StandingOf(int number) SPILLWAY_EXCLUDES(mutex_);
  static Standing StandingBy(protocol::AdmissionState state);
  void SayWhoseBudgetHolds(int number) SPILLWAY_EXCLUDES(mutex_);
  void StopWaiting(int number) SPILLWAY_EXCLUDES(mutex_);
  void NobodyAnswers() SPILLWAY_REQUIRES(mutex_);
  void StartThreads();
  void Run() SPILLWAY_EXCLUDES(mutex_);
  void RunShrinking() SPILLWAY_EXCLUDES(mutex_);
  void ServeMemory() SPILLWAY_EXCLUDES(mutex_);
  JobMemory* TakeAsked() SPILLWAY_EXCLUDES(mutex_);
  void Answered(bool has_work) SPILLWAY_EXCLUDES(mutex_);
  void Shrink() SPILLWAY_EXCLUDES(mutex_);
  JobMemory* TakeShrinking() SPILLWAY_EXCLUDES(mutex_);
  void EndShrinking(std::uint64_t now_ns) SPILLWAY_REQUIRES(mutex_);
  bool TakeTurn(int* file, std::int64_t* next_ns) SPILLWAY_EXCLUDES(mutex_);

  const std::string address_;
  const int pid_ = getpid();
  bool threads_started_ = false, talks_ = false;  // guarded by runtime's lock
  std::atomic<bool> shrinks_here_{false};         // the thread that talks does what the other would
  Notifier shrink_notifier_;
  RemotePlanner planner_{this};
  base::Mutex mutex_{base::LockRank::kPlannerThread};
  LeaseClient client_ SPILLWAY_GUARDED_BY(mutex_);
  std::array<Device, protocol::kMostDevices> devices_ SPILLWAY_GUARDED_BY(mutex_);
  JobMemory* served_ SPILLWAY_GUARDED_BY(mutex_) =
      nullptr;  // the memory that is being emptied, or asked, now
};

}  // namespace spillway::interposer
