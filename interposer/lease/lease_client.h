// This process's side of a session with the node agent: reports memory use, and passes grants on.
//
// It never blocks and allocates little. Without an agent it only tries to connect now and then.
// Invariants
//  1. A grant is followed (LeaseSubject::SetBudget) before it is confirmed. Each confirmation
//     states the memory that is really held, until that is within the grant.
//  2. When the connection is lost, budgets stay. The client retries after 50 ms, then after twice
//     as long each time, up to 2 s (30 s after a refusal). It registers the memory it holds.
//  3. Only the newest grant counts. Without a grant the reported memory may not grow
//     (LeaseSubject::HoldGrowth) until the agent grants some or queues the job. After 5 s growth is
//     released. A session whose agent stays silent that long ends. The next begins 5 s later, then
//     after twice as long each time, up to 30 s. A process that registered with no memory, and then
//     begins to use some, registers anew.
//  4. A job in the agent's queue, or before its first grant, stops waiting once the agent is gone
//     and silent for 30 s (LeaseSubject::NoteAgentAbsent). It keeps waiting while an agent greets,
//     or refuses connections because there are too many at once (next try after 1 s). An agent may
//     be silent for hours towards waiting jobs. After 15 s of silence the client greets it on a
//     second connection. Without an answer there within 5 s the agent counts as gone.
//  5. A device that the agent does not know is registered no more with this agent, so that the
//     session of the others lasts. The agent's refusal names none: where several could be meant,
//     the next session registers one at a time.
//  6. Messages of a protocol version (2: slabs, the link, Leaving; 3: plans, HostNeed; 4: Account,
//     StepTimes; 5: DriverSlabs; 6: Footprint; 8: WorkspaceUse; 9: TurnUse; 10: PlanUse; 11:
//     SpillUse, LostTime) are not sent to an older agent.
// Never: checks a grant against the launcher's budget; the subject does.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "protocol/channel.h"

namespace spillway::interposer {

struct DeviceUse {
  bool active = false;
  protocol::Phase phase = protocol::Phase::kReactive;
  int64_t wanted_bytes = 0, resident_bytes = 0, unmovable_bytes = 0, host_bytes = 0;
  int64_t to_host_bytes = 0, to_device_bytes = 0, stall_ns = 0, iterations = 0;
  int64_t demand_fetches = 0, refused_allocations = 0;
  int64_t host_need_bytes = 0;  // the need if all its memory were evicted
  protocol::Account account;    // the sender fills in the device of both
  protocol::StepTimes steps;
  int64_t allocated_bytes = 0;  // highest so far; wanted_bytes may be more while that grows
  protocol::WorkspaceUse workspaces;
  protocol::TurnUse turns;
  protocol::PlanUse plans;
  protocol::SpillUse spill;
  protocol::LostTime lost;
};

// A silent agent takes connections but does not answer.
enum class Absence : uint8_t { kGone, kSilent };

class LeaseSubject {
 public:
  virtual ~LeaseSubject() = default;
  virtual DeviceUse Read(uint32_t device) = 0;
  // The held memory is about to be reported without a grant, and the agent will count on it. It may
  // not grow until SetBudget, Admission, ReleaseGrowth or HandleSessionLoss.
  virtual void HoldGrowth(uint32_t /*device*/) {}
  // Ends HoldGrowth: the job was admitted, but no grant came in time.
  virtual void ReleaseGrowth(uint32_t /*device*/) {}
  // The agent is gone or silent for too long, while the job is queued, awaits its first grant, or
  // has one of no memory.
  virtual void NoteAgentAbsent(uint32_t /*device*/, Absence /*how*/) {}
  // Sets the grant's host memory at once, even if the budget takes time to meet.
  virtual void SetHostLimit(const protocol::Grant& /*grant*/) {}
  virtual void SetWorkspaceLimit(const protocol::WorkspaceGrant& /*grant*/) {}
  // Comes before the grants that follow from it. `patience_until_ns` is on Step's clock.
  virtual void SetTurn(const protocol::Turn& /*turn*/, int64_t /*patience_until_ns*/) {}
  // Whether the last grant is in force. Not yet, while calls are in progress that began before the
  // job had to wait for its turn.
  virtual bool MayConfirm(uint32_t /*device*/) { return true; }
  // From now on held memory may not grow beyond the grant. Excess memory is evicted as soon as
  // possible. Does not wait. `deadline_ns` is on Step's clock.
  virtual void SetBudget(const protocol::Grant& grant, int64_t deadline_ns) = 0;
  virtual void Admission(const protocol::Admission& admission) = 0;

  // Slabs of the node's pinned pool. TakeReturnedSlabs names each unmapped slab once.
  virtual int64_t MissingSlabBytes(uint32_t /*device*/) { return 0; }
  virtual void AddSlabs(const protocol::Slabs& /*slabs*/, std::vector<base::UniqueFd> /*files*/) {}
  virtual void AddDriverSlabs(const protocol::DriverSlabs& /*slabs*/,
                              std::vector<base::UniqueFd> /*files*/) {}
  virtual std::vector<protocol::SlabName> HeldSlabs() { return {}; }
  virtual std::vector<protocol::SlabName> TakeReturnedSlabs() { return {}; }
  virtual void SetLinkPlace(const protocol::LinkPlace& /*place*/, base::UniqueFd /*terms*/,
                            base::UniqueFd /*lanes*/) {}
  // Plans that were asked for. After HandleSessionLoss no more arrive.
  virtual void TakePlanReply(const protocol::PlanReply& /*reply*/,
                             std::vector<base::UniqueFd> /*files*/) {}
  virtual void TakeRecalledPlans(const protocol::RecalledPlans& /*recalled*/,
                                 std::vector<base::UniqueFd> /*files*/) {}
  virtual void TakeSpillFile(const protocol::SpillFile& /*file*/, base::UniqueFd /*descriptor*/) {}
  virtual void ReturnSpilled(uint32_t /*device*/) {}
  virtual void HandleSessionLoss() {}
};

class LeaseConnector {
 public:
  virtual ~LeaseConnector() = default;
  virtual std::unique_ptr<protocol::Channel> Connect() = 0;
};

class LeaseClient {
 public:
  struct Settings {
    int32_t leader_pid = 0;
    int64_t own_host_limit_bytes = 0;
  };

  LeaseClient(const Settings& settings, LeaseConnector* connector, LeaseSubject* subject)
      : settings_(settings), connector_(*connector), subject_(*subject) {}

  // The process begins to use a device. `device` is the process's own number for it. The job asks
  // for at most `own_limit_bytes` there; 0: no such limit.
  void Use(uint32_t device, const protocol::DeviceUuid& uuid, int64_t memory_bytes,
           int64_t own_limit_bytes = 0);
  // Returns the latest time for the next call, unless data arrives earlier.
  int64_t Step(int64_t now_ns);
  // The process is about to end. Nothing is sent afterwards; its memory stays charged until then.
  void End(int exit_code);

  // False: no agent that plans.
  bool AskPlan(const protocol::AskPlan& ask, int file);
  bool RecallPlans(const protocol::RecallPlans& recall);

  bool is_served() const { return state_ == State::kServed; }
  bool is_put_off() const { return state_ == State::kAway && is_put_off_; }
  int file() const { return channel_ == nullptr ? -1 : channel_->file(); }

 private:
  enum class State : uint8_t { kAway, kGreeting, kServed };
  struct Device {
    uint32_t number = 0;
    protocol::DeviceUuid uuid = {};
    int64_t memory_bytes = 0;
    int64_t own_limit_bytes = 0;
    bool registered = false;
    bool is_answered = false;            // in this session
    std::optional<uint64_t> unknown_to;  // the agent that does not know it
    bool has_grant = false;
    bool must_follow = false;
    bool has_workspace_limit = false;         // of this session
    std::optional<protocol::TurnState> turn;  // of this session
    protocol::TurnUse reported_turns;
    int64_t reported_turns_ns = 0;
    protocol::Grant grant;         // the newest
    int64_t confirmed_bytes = -1;  // memory held, as confirmed for this grant; -1: not confirmed
    int64_t confirmed_host_bytes = -1;
    int64_t reported_held_bytes = 0;  // reported at registration
    int64_t reported_held_ns = 0;
    bool is_held_back = false;
    bool is_admitted = false;  // and the agent has said so
    bool waits = false;        // in the queue, for its first grant, or for more than nothing
    int64_t asked_slab_bytes = 0;
    int64_t asked_slabs_ns = 0;
    int64_t asks_slabs_from_ns = 0;  // later than now: no descriptors were left for the last ones
    protocol::Usage said;
    int64_t reported_ns = 0;
    int64_t reported_need_bytes = 0;
    int64_t reported_need_ns = 0;
    protocol::Account reported_account;
    protocol::StepTimes reported_steps;
    std::optional<protocol::Footprint> reported_footprint;
    protocol::WorkspaceUse reported_workspaces;
    protocol::PlanUse reported_plans;
    std::optional<protocol::SpillUse> reported_spill;
    protocol::LostTime reported_lost;
    int64_t reported_parts_ns = 0;
  };
  struct Check {
    int64_t since_ns;
    std::unique_ptr<protocol::Channel> channel;  // null: it takes no connections
  };

  void TryToConnect(int64_t now_ns);
  void Listen(int64_t now_ns);
  void Handle(protocol::Received& received, int64_t now_ns);
  void Handle(const protocol::Error& error, int64_t now_ns);
  void Begin(const protocol::Welcome& welcome, int64_t now_ns);
  bool MayRegister(const Device& device) const;
  bool FindsUnknownDevice();
  void ReportHeldSlabs(int64_t now_ns);
  void ReturnSlabs(int64_t now_ns);
  void ReturnUnreceived(uint32_t number, const protocol::SlabNames& slabs, int64_t now_ns);
  void AskForSlabs(Device& device, int64_t now_ns);
  bool HasPlanner(uint32_t device);
  bool HasShares() const { return channel_ != nullptr && channel_->version() >= 2; }
  void Note(const protocol::Grant& grant, int64_t now_ns);
  void Note(const protocol::Admission& admission);
  void Note(const protocol::WorkspaceGrant& limit);
  void Note(const protocol::Turn& turn, int64_t now_ns);
  void NoteAgentMessage();
  void ReleaseGrowthAfterTimeout(Device& device, int64_t now_ns);
  void StopWaitingForAgent(int64_t now_ns);
  bool IsWaiting() const;
  void ProbeSilentAgent(int64_t now_ns);
  void EndCheck();
  void Follow(Device& device, int64_t now_ns);
  void Lose(int64_t now_ns, int64_t again_after_ns);
  bool Send(const protocol::Message& message, int64_t now_ns);
  void Register(Device& device, int64_t now_ns);
  void Confirm(Device& device, int64_t now_ns);
  void Report(Device& device, int64_t now_ns);
  void ReportParts(Device& device, DeviceUse& use, int64_t now_ns);
  void ReportTurns(Device& device, DeviceUse& use, int64_t now_ns);
  void ReportHostNeed(Device& device, int64_t host_need_bytes, int64_t now_ns);
  Device* Find(uint32_t number);
  static bool WaitsForTurn(const Device& device) {
    return device.turn == protocol::TurnState::kWaits;
  }
  static bool IsUnanswered(const Device& device) {
    return device.registered && !device.is_answered;
  }

  const Settings settings_;
  LeaseConnector& connector_;
  LeaseSubject& subject_;
  State state_ = State::kAway;
  std::unique_ptr<protocol::Channel> channel_;
  std::vector<Device> devices_;
  int64_t try_again_ns_ = 0;
  int64_t pause_ns_ = 0;
  int64_t silence_pause_ns_ = 0;          // after an agent that stayed silent after a registration
  std::optional<int64_t> lost_first_ns_;  // since the agent's last message
  bool is_put_off_ = false, takes_connections_ = false;
  int64_t last_heard_ns_ = 0;   // last sign of the agent
  std::optional<Check> check_;  // probes a silent agent
  int64_t interval_ns_ = 0;
  uint64_t agent_instance_ = 0;
  bool registers_singly_ = false;
  std::vector<protocol::SlabName> to_return_;
};

}  // namespace spillway::interposer
