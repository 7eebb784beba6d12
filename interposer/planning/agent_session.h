// The process's session with the node agent: reports memory use, turns grants into budgets.
//
// Threads: runtime calls Attach and Detach with its lock held. The first Attach starts two threads
// with all signals blocked. They take the locks of the jobs' memory like any calling thread.
//  - The lease thread talks with the agent. So a grant never waits for a plan in the making. It
//    also ends draining, and begins turns while the shrink thread is busy: that one may wait for
//    work that a held call would begin.
//  - The shrink thread empties memory after a budget was lowered (Grants::MeetBudget), while the
//    lease thread reports progress. It also asks the devices of inactive jobs if they are idle,
//    pins host memory ahead for jobs in turns, and gives up the host copies that settled jobs do
//    not need.
// It exists only if the launcher named an agent.
// Invariants
//  1. A job's budget is its grant, but at most the launcher's budget.
//  2. Attach waits for the agent's first answer before the job's first allocation. It waits
//     kAnswerPatienceNs for a silent agent and kQueuePatienceNs in the queue. It does not wait for
//     an absent agent. A queued job stops waiting when the agent goes and stays away (LeaseClient).
//  3. Without an answer the launcher's budget holds until the first grant. Once a running job has
//     reported its memory to an agent, it may not grow beyond that. The hold ends when the agent
//     grants, queues the job, is gone, or grants nothing in time. A job that was rejected, or
//     queued for too long, has no device memory until there is a grant.
//  4. When the agent is gone, the last grant stays.
//  5. After Detach the job's memory is not touched. After exit began no memory is touched. The
//     agent is still notified of the exit if that takes only a moment.
//  6. Invariants 1 to 5 hold for host memory, too. Plans and copies obey the job's link share.
//  7. Memory that the process holds at exit stays charged to it until the process has ended.
//  8. If the shrink thread cannot start, the lease thread does its work: then a turn may begin
//     late. Without the lease thread there is no agent.
//  9. While a device is in turns and it is not the process's turn, the gate (turn_gate.h) is held.
//     A smaller budget comes into force, and is confirmed, once no call is inside, or after
//     DeviceTurn::kDrainPatienceNs. When the turn comes, memory comes back as the grants grow; the
//     gate opens with the grant that suffices, or after the agent's patience. It also opens when
//     the agent is gone for as long as a queued job would wait, and at exit.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "interposer/execute/job_memory.h"
#include "interposer/lease/lease_client.h"
#include "interposer/lease/notifier.h"
#include "interposer/planning/device_turn.h"
#include "interposer/planning/growth.h"
#include "interposer/planning/idleness.h"
#include "interposer/planning/lent_budget.h"
#include "interposer/planning/remote_planner.h"
#include "interposer/planning/shrink_schedule.h"
#include "interposer/planning/slab_delivery.h"
#include "interposer/planning/spill_thread.h"

namespace spillway::interposer {

class AgentSession final : public LeaseSubject, public LeaseConnector, public PlanWire {
 public:
  static AgentSession* Instance();

  void Attach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  void Detach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  // Lets the agent plan. Returns no plans if the agent is gone or does not plan.
  PlanSource* planner() { return &planner_; }

 private:
  // kAdmitted: the first grant arrives when other jobs have given memory back.
  enum class Standing : std::uint8_t { kAsking, kAlone, kQueued, kRejected, kAdmitted, kGranted };
  struct Device {
    JobMemory* memory = nullptr;  // null: its context has ended
    ShrinkSchedule shrink;
    std::int64_t own_budget_bytes = 0;
    std::int64_t granted_bytes = 0;
    std::int64_t granted_host_bytes = 0;
    std::int64_t link_permille = 1000;
    size_t workspace_limit_bytes = SIZE_MAX;
    protocol::LinkPlace place;
    base::UniqueFd terms, lanes;  // empty: it has no place on the link
    Standing standing = Standing::kAsking;
    bool is_held_back = false;  // may not grow beyond what it reported to an agent
    Idleness idleness;
    Growth growth;
    DeviceTurn turn;
    LentBudget lent;
  };

  explicit AgentSession(const std::string& address);

  DeviceUse Read(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void HoldGrowth(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void ReleaseGrowth(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void NoteAgentAbsent(std::uint32_t device, Absence how) override SPILLWAY_REQUIRES(mutex_);
  void SetHostLimit(const protocol::Grant& grant) override SPILLWAY_REQUIRES(mutex_);
  void SetWorkspaceLimit(const protocol::WorkspaceGrant& grant) override SPILLWAY_REQUIRES(mutex_);
  void SetTurn(const protocol::Turn& turn, std::int64_t patience_until_ns) override
      SPILLWAY_REQUIRES(mutex_);
  bool MayConfirm(std::uint32_t device) override SPILLWAY_REQUIRES(mutex_);
  void SetBudget(const protocol::Grant& grant, std::int64_t deadline_ns) override
      SPILLWAY_REQUIRES(mutex_);
  void Admission(const protocol::Admission& admission) override SPILLWAY_REQUIRES(mutex_);
  std::int64_t MissingSlabBytes(std::uint32_t device) override;
  void AddSlabs(const protocol::Slabs& slabs, std::vector<base::UniqueFd> files) override {
    DeliverSlabs(slabs, std::move(files));
  }
  void AddDriverSlabs(const protocol::DriverSlabs& slabs,
                      std::vector<base::UniqueFd> files) override {
    DeliverSlabs(slabs, std::move(files));
  }
  std::vector<protocol::SlabName> HeldSlabs() override;
  std::vector<protocol::SlabName> TakeReturnedSlabs() override;
  void SetLinkPlace(const protocol::LinkPlace& place, base::UniqueFd terms,
                    base::UniqueFd lanes) override SPILLWAY_REQUIRES(mutex_);
  void TakePlanReply(const protocol::PlanReply& reply, std::vector<base::UniqueFd> files) override;
  void TakeRecalledPlans(const protocol::RecalledPlans& recalled,
                         std::vector<base::UniqueFd> files) override;
  void TakeSpillFile(const protocol::SpillFile& file, base::UniqueFd descriptor) override {
    spill_.TakeFile(file, std::move(descriptor));
  }
  void ReturnSpilled(std::uint32_t device) override { spill_.ReturnAll(device); }
  void HandleSessionLoss() override SPILLWAY_REQUIRES(mutex_);
  std::unique_ptr<protocol::Channel> Connect() override;
  bool Send(const protocol::AskPlan& ask, int file) override SPILLWAY_EXCLUDES(mutex_);
  bool Send(const protocol::RecallPlans& recall) override SPILLWAY_EXCLUDES(mutex_);

  Device* Find(std::uint32_t number) SPILLWAY_REQUIRES(mutex_);
  void Apply(Device* device) SPILLWAY_REQUIRES(mutex_);
  static void ExpectReturn(Device* device, std::optional<std::uint64_t> until_ns) {
    if (until_ns && device->memory) device->memory->grants().ExpectReturn(*until_ns);
  }
  void ApplyBudget(Device* device) SPILLWAY_REQUIRES(mutex_);
  void UpdateGate() SPILLWAY_REQUIRES(mutex_);
  void EndDraining(std::uint64_t now_ns) SPILLWAY_REQUIRES(mutex_);
  JobMemory* TakeStarting() SPILLWAY_EXCLUDES(mutex_);
  void EndStarting() SPILLWAY_EXCLUDES(mutex_);
  void StartTurns() SPILLWAY_EXCLUDES(mutex_);
  void BeginTurns(const JobMemory* brought_back) SPILLWAY_REQUIRES(mutex_);
  bool IsTurnChanging() SPILLWAY_REQUIRES(mutex_);
  std::int64_t ShrinkPauseMs() SPILLWAY_EXCLUDES(mutex_);
  void Release(Device* device) SPILLWAY_REQUIRES(mutex_);
  static void AtExit(int status, void* session);
  void ReportExit(int status) SPILLWAY_UNANALYSED;
  static std::int64_t Wanted(Device* device, std::int64_t peak_bytes, std::uint64_t now_ns);
  void AwaitFirstAnswer(int number) SPILLWAY_EXCLUDES(mutex_);
  Standing StandingOf(int number) SPILLWAY_EXCLUDES(mutex_);
  static Standing StandingBy(protocol::AdmissionState state);
  void PrintBudgetInForce(int number) SPILLWAY_EXCLUDES(mutex_);
  void StopWaiting(int number) SPILLWAY_EXCLUDES(mutex_);
  void GiveUpOnAgent() SPILLWAY_REQUIRES(mutex_);
  void StartThreads();
  void Run() SPILLWAY_EXCLUDES(mutex_);
  void RunShrinking() SPILLWAY_EXCLUDES(mutex_);
  void ServeMemory() SPILLWAY_EXCLUDES(mutex_);
  JobMemory* TakeNext(size_t* number, bool* may_leave) SPILLWAY_EXCLUDES(mutex_);
  bool ServeHostMemory() SPILLWAY_EXCLUDES(mutex_);
  JobMemory* TakeAsked() SPILLWAY_EXCLUDES(mutex_);
  void Answered(bool has_work) SPILLWAY_EXCLUDES(mutex_);
  void Shrink() SPILLWAY_EXCLUDES(mutex_);
  JobMemory* TakeShrinking() SPILLWAY_EXCLUDES(mutex_);
  void EndShrinking(std::uint64_t now_ns) SPILLWAY_REQUIRES(mutex_);
  bool TakeTurn(int* file, std::int64_t* next_ns) SPILLWAY_EXCLUDES(mutex_);

  const std::string address_;
  const int pid_ = getpid();
  bool threads_started_ = false, has_lease_thread_ = false;  // guarded by runtime's lock
  std::atomic<bool> lease_thread_shrinks_{false};  // the lease thread does the shrink thread's work
  Notifier shrink_notifier_;
  RemotePlanner planner_{this};
  SpillThread spill_;
  base::Mutex mutex_{base::LockRank::kPlannerThread};
  LeaseClient client_ SPILLWAY_GUARDED_BY(mutex_);
  std::array<Device, protocol::kMostDevices> devices_ SPILLWAY_GUARDED_BY(mutex_);
  JobMemory* served_ SPILLWAY_GUARDED_BY(mutex_) = nullptr;  // memory being emptied or asked now
};

}  // namespace spillway::interposer
