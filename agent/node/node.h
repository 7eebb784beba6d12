// The agent without sockets and clocks: sessions, jobs and the arbiter behind a few events. The
// loop drives it with real ones, the simulation with fakes. One thread, the loop's. `now_ns` is any
// clock; if it goes backwards, things only take longer. Owns the channels.
//
// Invariants
//  1. A session that breaks a rule gets one Error that names the rule, and is closed. Other
//     sessions are not affected.
//  2. A living process keeps its grant, connected or not. A dead one keeps nothing.
//  3. A client with kMostUnread unread grants gets no further ones. The rest follows when it reads
//     again.
//  4. A message changes only its sender's own job.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "agent/config/config.h"
#include "agent/node/held_record.h"
#include "agent/node/node_report.h"
#include "agent/node/planning.h"
#include "agent/node/rate.h"
#include "agent/node/saved_state.h"
#include "agent/node/services.h"
#include "agent/node/shares.h"
#include "protocol/channel.h"
#include "protocol/link_page.h"

namespace spillway::agent {

struct NodeDevice {
  protocol::DeviceUuid uuid = {};
  std::string name;  // "GPU-..."
  std::string model;
  int64_t memory_bytes = 0;
  std::string bus_id = {};  // PCI; empty: unknown
  bool is_found = true;     // false: configured, but unknown to NVML
};

class Node {
 public:
  // `services`, `shares` and `planning` outlive the node. Null shares: no slabs and no link places.
  // Null planning: jobs plan for themselves.
  Node(Config config, std::vector<NodeDevice> devices, int64_t host_bytes, uint64_t instance,
       NodeServices* services, int64_t now_ns, Shares* shares = nullptr,
       Planning* planning = nullptr, HeldRecord* record = nullptr);

  // Nullopt: refused; the channel has received the reason.
  std::optional<SessionId> Connected(std::unique_ptr<protocol::Channel> channel,
                                     std::unique_ptr<Peer> peer, int64_t now_ns);
  void Readable(SessionId session, int64_t now_ns);
  void PeerEnded(SessionId session, int64_t now_ns);
  // Decides and sends. Call it after every batch of events, and when NextWake has come.
  void Settle(int64_t now_ns);
  int64_t NextWake() const;

  // Sessions whose channel closed since the last call. The node keeps those with a living process.
  struct Gone {
    SessionId session;
    bool process_lives;
  };
  std::vector<Gone> TakeGone() { return std::exchange(gone_, {}); }

  void SetConfig(const Config& config);
  void NoteReload(bool succeeded);
  // The operators' settings. Restore takes those of an earlier instance; a job gets its terms when
  // it returns in time.
  SavedState Saved() const;
  void Restore(const SavedState& state);
  // Rises when Saved would change.
  uint64_t saved_version() const { return saved_version_; }
  void Stop();  // says goodbye to all sessions; processes keep their grants

  const Config& config() const { return config_; }
  NodeReport Report(int64_t now_ns) const;
  const Arbiter& arbiter() const { return arbiter_; }
  size_t session_count() const { return sessions_.size(); }

  static constexpr size_t kMostUnread = 4;

 private:
  struct Job {
    JobId id{};
    std::string name, key, command;
    JobSource source = JobSource::kLocal;
    std::string source_id;
    uid_t uid = 0;
    OwnerId owner = kNobody;
    int64_t since_ns = 0;
    bool is_logged = true;  // its start, and so its end
    std::set<SessionId> sessions;
    TermsChange set_by_operator;
    std::map<DeviceId, TenancyReport> finished;  // sums of ended processes
    std::optional<int32_t> exit_code;            // last one reported
    std::map<DeviceId, int64_t> asked_ns;        // devices on which it still waits for admission
  };
  struct Registration {
    DeviceId device{};
    protocol::Usage usage;
    std::optional<protocol::Account> parts;  // nullopt: an older protocol, or not reported yet
    protocol::StepTimes steps;
    std::optional<int64_t> allocated_bytes;  // nullopt: an older protocol, or not reported yet
    protocol::Register asked;
    std::optional<int64_t> host_need_bytes;  // if it had no device memory; reported
    std::vector<uint64_t> unread;            // serials of grants sent and not answered
    std::optional<GrantDecision> unsent;     // the newest grant held back
    int64_t granted_host_bytes = 0;
    int64_t wanted_slab_bytes = 0;  // asked for, not sent yet
    int64_t most_held_bytes = 0;    // of device memory, within its budget
    bool has_claim = true;
    std::optional<int64_t> unused_until_ns;  // end of an unused claim
    int64_t wanted_without_claim = 0;
    std::optional<Shares::Place> place;
  };
  enum class State : uint8_t { kNew, kJob, kOperator, kDetached };
  struct Session {
    SessionId id{};
    State state = State::kNew;
    std::unique_ptr<protocol::Channel> channel;
    std::unique_ptr<Peer> peer;
    JobId job{};
    std::string part;  // a Slurm step or a pod's container; empty: none
    Rate messages;
    std::map<uint32_t, Registration> registrations;  // by the client's device number
    std::vector<protocol::Admission> unsent_admissions;
    int64_t since_ns = 0;
    uint16_t version = 1;
    bool is_leaving = false;
    std::set<protocol::SlabName> not_named;  // its slabs by our records that it has not named yet
  };
  // An owner of jobs: a user, a pod or container, or an account.
  struct Owner {
    OwnerId id{};
    std::string account = {};  // a user's
    std::optional<int64_t> uid = {};
    OwnerTerms terms = {};
    size_t jobs = 0;
    bool is_configured = false;  // kept without jobs, too
  };
  struct User {
    Rate connections;
    Rate questions;  // of all its operator sessions
    Rate lines;      // of log lines
    int64_t lines_left_out = 0;
    int64_t sessions = 0;
  };

  void Take(Session& session, protocol::Received& received, int64_t now_ns);
  void On(Session& session, const protocol::Hello& hello, int64_t now_ns);
  void On(Session& session, const protocol::Register& asked, int64_t now_ns);
  void On(Session& session, const protocol::Usage& usage);
  void On(Session& session, const protocol::Obeyed& obeyed);
  void On(Session& session, const protocol::HostNeed& need);
  void On(Session& session, const protocol::Account& parts);
  void On(Session& session, const protocol::StepTimes& steps);
  void On(Session& session, const protocol::Footprint& footprint);
  void On(Session& session, const protocol::AskSlabs& ask);
  void On(Session& session, const protocol::ReturnSlabs& returned);
  void On(Session& session, const protocol::HeldSlabs& held);
  void On(Session& session, const protocol::Leaving& leaving);
  protocol::Outcome On(Session& session, const protocol::Ask& ask, int64_t now_ns);
  protocol::Done DoneOf(const Session& session, const protocol::Message& message);
  protocol::Done Do(const protocol::SetBudget& wanted);
  protocol::Done Do(const protocol::Control& control);
  std::string WhyNotSaved();
  void TakeAsJob(Session& session, const protocol::Message& message, int64_t now_ns);
  void TakeAsOperator(Session& session, const protocol::Message& message, int64_t now_ns);
  protocol::Outcome Answer(Session& session, const protocol::Message& message, int64_t now_ns);
  static protocol::Outcome Say(Session& session, const protocol::Done& done);
  void SetDevices();
  bool IsFirstOn(const Job& job, DeviceId device) const;

  void Refuse(Session& session, protocol::ErrorCode code, std::string_view reason);
  void CloseChannel(Session& session);
  void Forget(SessionId session, int64_t now_ns);
  void EndJobIfEmpty(JobId job, int64_t now_ns);
  bool MayOperate(const Session& session) const;
  Job& JobFor(const JobIdentity& identity, uid_t uid, int64_t now_ns);
  Job* JobNamed(std::string_view name);
  bool TakeOver(Session& session, DeviceId device, const protocol::Register& asked,
                const Demand& demand);
  void EndRegistrations(Session& session, DeviceId device);
  // node_crowd.cpp
  std::optional<protocol::Error> WhyNotConnected(const Peer& peer, int64_t now_ns);
  bool MakeRoom(std::optional<uid_t> user, int64_t at_least);
  void EndSilent(int64_t now_ns);
  bool MayLog(uid_t uid);
  void NoteUnknownDevice(const Session& session, const protocol::DeviceUuid& uuid);
  Held HeldBefore(const Session& session, DeviceId device, const protocol::Register& asked) const;
  TenantProcess ProcessOf(const Session& session, DeviceId device) const {
    return {session.job, session.id, device};
  }
  void Tell(const AdmissionDecision& decision);
  void Tell(const GrantDecision& decision);
  void SendGrant(Session& session, uint32_t number, Registration& registration);
  void SendWaiting(Session& session);
  // node_terms.cpp
  Terms TermsOf(const Job& job, DeviceId device) const;
  protocol::Register OwnLimitsOf(const Job& job, DeviceId device) const;
  void RefreshTerms(const Job& job);
  void RefreshTerms(const Job& job, DeviceId device);
  // node_owners.cpp
  static std::string OwnerNameOf(const Job& job);
  Owner& OwnerNamed(const std::string& name);
  void SetTermsOf(const std::string& name, Owner& owner);
  void SetOwners();
  void AddToOwner(Job& job);
  void TakeFromOwner(const Job& job);
  std::vector<OwnerReport> ReportOwners(const std::vector<TenancyView>& views) const;
  // node_claims.cpp
  static bool HoldsSomething(const Session& session, const Registration& registration);
  void NoteUse(Session& session, uint32_t number, Registration& registration,
               const protocol::Usage& before);
  void AwaitUse(Session& session, uint32_t number, Registration& registration);
  void SetClaim(Session& session, Registration& registration, bool has_claim);
  void EndUnusedClaims(int64_t now_ns);
  void Record(const Session& session, const Registration& registration);
  void RecordBudgeted(const TenantProcess& process);
  static Demand DemandOf(const Registration& registration);
  HolderOnDevice HolderOn(const Session& session, DeviceId device) const;
  // node_shares.cpp
  bool HasShares(const Session& session) const;
  static PoolJob PoolJobOf(const Job& job);
  PoolHolder HolderOf(const Session& session) const;
  void BeginShares(Session& session);
  bool IsLastWithSlabs(const Session& session) const;
  void ServeSlabs(Session& session, uint32_t number, Registration& registration);
  static size_t SendSlabs(Session& session, uint32_t number, std::span<const Lease> leases);
  void GiveBack(Session& session, std::span<const Lease> leases);
  void ApplyShares(Session& session, uint32_t number, Registration& registration,
                   const GrantDecision& decision);
  void SetQuotaOf(JobId id);
  void NoteHeld(Session& session, uint32_t number, Registration& registration);
  void LeaveLink(const Registration& registration);
  void EndShares(const Session& session);
  void SettleShares(int64_t now_ns);
  int64_t OutsideBytes() const;
  // node_plans.cpp
  bool TakePlanMessage(Session& session, protocol::Received& received);
  void On(Session& session, const protocol::AskPlan& ask, std::vector<base::UniqueFd>& files);
  void On(Session& session, const protocol::RecallPlans& recall);
  PlanOwner PlanOwnerOf(const Session& session) const;
  void SendPlans();
  static int64_t FootprintOf(const Registration& registration, uint16_t version);
  static void AddUsage(const Registration& registration, TenancyReport& sum);
  JobReport ReportOf(const Job& job, int64_t now_ns) const;
  Session* Find(SessionId id);

  Config config_;
  const std::vector<NodeDevice> devices_;
  const int64_t host_bytes_;
  const uint64_t instance_;
  NodeServices* const services_;
  Shares* const shares_;
  Planning* const planning_;
  HeldRecord* const record_;
  const int64_t started_ns_;
  Arbiter arbiter_;
  bool resuming_ = true;
  int64_t resume_left_ns_ = 0;
  bool last_reload_succeeded_ = true;
  int64_t settled_ns_;
  std::map<SessionId, Session> sessions_;
  std::set<SessionId> waiting_;  // with unsent messages
  std::map<JobId, Job> jobs_;
  std::map<std::string, JobId> jobs_by_key_;
  SavedState restored_;  // of jobs that have not returned yet
  uint64_t saved_version_ = 0;
  std::map<uid_t, User> users_;
  std::map<std::string, Owner> owners_;
  uint64_t last_owner_ = 0;
  std::set<std::tuple<int64_t, SessionId, uint32_t>>
      unused_;  // claims of processes that hold nothing, by their end
  std::vector<Gone> gone_;
  NodeCounters counters_;
  uint64_t last_session_ = 0, last_job_ = 0;
  int64_t mend_ns_ = 0, next_silence_check_ns_ = 0;
  bool slabs_retry_ = false;  // some slabs could not be sent
  struct UnknownDevice {
    std::string name;
    uid_t uid = 0;  // of the first process that asked for it
  };
  std::vector<UnknownDevice> unknown_devices_;  // requested by jobs; bounded, oldest first
};

}  // namespace spillway::agent
