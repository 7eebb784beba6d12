// This process's side of a session with the node agent: says what it uses, follows what it is
// granted.
//
// Called by one thread at a time (planning/agent_session.h): Use once per device, Step whenever
// something is to be read or time has passed. A state machine over a Channel; it never blocks,
// allocates little, and does nothing where there is no agent but try again now and then.
//
// Invariants
//  1. A grant is followed (LeaseSubject::SetBudget) before it is confirmed, and confirmed with what
//  is really held, again and again
//     until that is no more than was granted.
//  2. When the connection is lost, budgets stay as they are. It tries again after 50 ms, then twice
//  as long each time, up to 2 s
//     (30 s after a refusal), and registers with what it holds.
//  3. Only the newest grant counts. Without one, what is said to be held is not added to
//  (LeaseSubject::HoldGrowth) until the agent
//     grants some or makes it wait, for 5 s at most: then growth is released. The session of an
//     agent that has said nothing ends, and the next begins 5 s later, then after twice as long
//     each time, up to 30 s. Who said that it holds nothing, and then begins, says so by
//     registering anew.
//  4. Who waits in an agent's queue, or for its first grant, waits no longer when the agent is gone
//  and has not said a word for 30 s since
//     (LeaseSubject::AgentStaysAway); as long as an agent is there that greets, or takes no
//     connection because there are too many at once (it is asked again after 1 s), it waits. An
//     agent has nothing to say for hours to who waits: one that was silent for 15 s is greeted on a
//     second connection, and is gone if it says nothing there within 5 s.
//  5. What a version has (2: slabs, the link, Leaving; 3: plans, HostNeed; 4: Account, StepTimes;
//  5: DriverSlabs; 6: Footprint) is not said to an agent of one before it.
// Never: believes that a grant is larger than what the launcher allows; that is the subject's to
// see to.
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
  int64_t host_need_bytes = 0;  // were it to have nothing of the device
  protocol::Account account;    // but for its device, and that of the next
  protocol::StepTimes steps;
  int64_t allocated_bytes = 0;  // at most so far; wanted_bytes claims more while that may grow
};

// An agent that takes connections and says nothing hangs.
enum class Absence : uint8_t { kGone, kSilent };

// The process's memory, as far as the lease is concerned.
class LeaseSubject {
 public:
  virtual ~LeaseSubject() = default;
  virtual DeviceUse Read(uint32_t device) = 0;
  // Without a grant what is held is about to be said to an agent, who counts with that: nothing is
  // added to it until there is a word of the agent's (SetBudget, Admission), or the session is
  // lost.
  virtual void HoldGrowth(uint32_t /*device*/) {}
  // It was admitted, and has been granted nothing for so long that it is held back no more.
  virtual void ReleaseGrowth(uint32_t /*device*/) {}
  // The agent that it waits for, in the queue or for its first grant, is gone or silent, and did
  // not come back in time.
  virtual void AgentStaysAway(uint32_t /*device*/, Absence /*how*/) {}
  // The grant's host memory, from now on: at once, whatever its budget takes.
  virtual void SetHostLimit(const protocol::Grant& /*grant*/) {}
  // From now on nothing is added to what is held beyond it; what is leaves as soon as it can. Waits
  // for nothing. `deadline_ns` on the clock of Step.
  virtual void SetBudget(const protocol::Grant& grant, int64_t deadline_ns) = 0;
  virtual void Admission(const protocol::Admission& admission) = 0;

  // Slabs of the node's host pool: how much is missing, what came, what is held, what is not used
  // any more (unmapped, said once).
  virtual int64_t MissingSlabBytes(uint32_t /*device*/) { return 0; }
  virtual void SlabsCame(const protocol::Slabs& /*slabs*/, std::vector<base::UniqueFd> /*files*/) {}
  virtual void DriverSlabsCame(const protocol::DriverSlabs& /*slabs*/,
                               std::vector<base::UniqueFd> /*files*/) {}
  virtual std::vector<protocol::SlabName> HeldSlabs() { return {}; }
  virtual std::vector<protocol::SlabName> TakeReturnedSlabs() { return {}; }
  // A place at the device's link.
  virtual void PlaceCame(const protocol::LinkPlace& /*place*/, base::UniqueFd /*terms*/,
                         base::UniqueFd /*lanes*/) {}
  // Plans that were asked for; and that no more of them will come, as the session has ended.
  virtual void PlanCame(const protocol::PlanReply& /*reply*/,
                        std::vector<base::UniqueFd> /*files*/) {}
  virtual void PlansRecalled(const protocol::RecalledPlans& /*recalled*/,
                             std::vector<base::UniqueFd> /*files*/) {}
  virtual void SessionLost() {}
};

// A connection that has been begun, or null when there is no agent.
class LeaseConnector {
 public:
  virtual ~LeaseConnector() = default;
  virtual std::unique_ptr<protocol::Channel> Connect() = 0;
};

class LeaseClient {
 public:
  struct Settings {
    int32_t leader_pid = 0;
    int64_t own_limit_bytes = 0;  // 0: none
    int64_t own_host_limit_bytes = 0;
  };

  LeaseClient(const Settings& settings, LeaseConnector* connector, LeaseSubject* subject)
      : settings_(settings), connector_(*connector), subject_(*subject) {}

  // The process begins to use a device, by its own number for it.
  void Use(uint32_t device, const protocol::DeviceUuid& uuid, int64_t memory_bytes);
  // Does what is to be done; returns when to come again at the latest, if nothing is to be read
  // before.
  int64_t Step(int64_t now_ns);
  // The process is about to end; nothing is said after that. What it holds is its own until it has
  // ended.
  void End(int exit_code);

  // Of a device that is registered. False: there is nobody who plans.
  bool AskPlan(const protocol::AskPlan& ask, int file);
  bool RecallPlans(const protocol::RecallPlans& recall);

  bool is_served() const { return state_ == State::kServed; }
  // An agent is there, and takes no more connections of this user for the moment.
  bool is_put_off() const { return state_ == State::kAway && is_put_off_; }
  // To be polled; -1 while there is no connection.
  int file() const { return channel_ == nullptr ? -1 : channel_->file(); }

 private:
  enum class State : uint8_t { kAway, kGreeting, kServed };
  struct Device {
    uint32_t number = 0;
    protocol::DeviceUuid uuid = {};
    int64_t memory_bytes = 0;
    bool registered = false;
    bool has_grant = false;
    bool must_follow = false;      // the grant is news to the subject
    protocol::Grant grant;         // the newest
    int64_t confirmed_bytes = -1;  // held, as last said for this grant; -1: nothing said
    int64_t confirmed_host_bytes = -1;
    int64_t said_held_bytes = 0;  // at its registration
    int64_t said_held_ns = 0;
    bool is_held_back = false;  // until the agent grants some, or makes it wait
    bool is_admitted = false;   // and was told so
    bool waits = false;         // in the queue, or for the first grant
    int64_t asked_slab_bytes = 0;
    int64_t asked_slabs_ns = 0;
    protocol::Usage said;
    int64_t said_ns = 0;
    int64_t said_need_bytes = 0;  // of the host
    int64_t said_need_ns = 0;
    protocol::Account said_account;
    protocol::StepTimes said_steps;
    int64_t said_allocated_bytes = 0;
    int64_t said_parts_ns = 0;
  };
  struct Check {
    int64_t since_ns;
    std::unique_ptr<protocol::Channel> channel;  // null: it takes no connections
  };

  void TryToConnect(int64_t now_ns);
  void Listen(int64_t now_ns);
  void Hear(protocol::Received& received, int64_t now_ns);
  void Hear(const protocol::Error& error, int64_t now_ns);
  void Begin(const protocol::Welcome& welcome, int64_t now_ns);
  void TellHeldSlabs(int64_t now_ns);
  void ReturnSlabs(int64_t now_ns);
  void AskForSlabs(Device& device, int64_t now_ns);
  bool HasPlanner(uint32_t device);
  bool HasShares() const { return channel_ != nullptr && channel_->version() >= 2; }
  void Note(const protocol::Grant& grant);
  void Note(const protocol::Admission& admission);
  void NoteWord();
  void ReleaseTheHeldBack(Device& device, int64_t now_ns);
  void ReleaseTheWaiting(int64_t now_ns);
  bool IsWaiting() const;
  void CheckTheSilent(int64_t now_ns);
  void Follow(Device& device, int64_t now_ns);
  void Lose(int64_t now_ns, int64_t again_after_ns);
  bool Say(const protocol::Message& message, int64_t now_ns);
  void Register(Device& device, int64_t now_ns);
  void Confirm(Device& device, int64_t now_ns);
  void Report(Device& device, int64_t now_ns);
  void ReportParts(Device& device, DeviceUse& use, int64_t now_ns);
  void ReportHostNeed(Device& device, int64_t host_need_bytes, int64_t now_ns);
  Device* Find(uint32_t number);

  const Settings settings_;
  LeaseConnector& connector_;
  LeaseSubject& subject_;
  State state_ = State::kAway;
  std::unique_ptr<protocol::Channel> channel_;
  std::vector<Device> devices_;
  int64_t try_again_ns_ = 0;
  int64_t pause_ns_ = 0;
  int64_t silence_pause_ns_ = 0;  // after an agent that took a registration and said nothing
  std::optional<int64_t> lost_first_ns_;  // since the agent's last word
  bool is_put_off_ = false, takes_connections_ = false;
  int64_t heard_ns_ = 0;        // the agent was there then
  std::optional<Check> check_;  // whether it still is
  int64_t interval_ns_ = 0;
  std::vector<protocol::SlabName> to_return_;
};

}  // namespace spillway::interposer
