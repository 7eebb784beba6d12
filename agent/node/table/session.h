// A session: one connection of a process, and the devices that it registered.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/arbiter/arbiter.h"
#include "agent/identity/peer.h"
#include "agent/node/rate.h"
#include "agent/node/shares.h"
#include "protocol/channel.h"

namespace spillway::agent {

struct Refusal {
  protocol::ErrorCode code{};
  std::string reason;
};

inline Refusal NotRegistered() {
  return {protocol::ErrorCode::kOutOfOrder, "this device is not registered"};
}

struct Registration {
  DeviceId device{};
  protocol::Usage usage;
  bool has_reported = false;               // usage is the process's own
  std::optional<protocol::Account> parts;  // nullopt: an older protocol, or not reported yet
  protocol::StepTimes steps;
  std::optional<int64_t> allocated_bytes;
  protocol::Register asked;
  std::optional<int64_t> host_need_bytes;  // if it had no device memory; reported
  std::vector<uint64_t> unread;            // serials of grants sent and not answered
  std::optional<GrantDecision> unsent;     // the newest grant held back
  int64_t sent_memory_bytes = 0;           // the last grant's
  int64_t sent_workspace_limit_bytes = protocol::kMostBytes;
  protocol::WorkspaceUse workspaces;
  int64_t granted_host_bytes = 0;
  int64_t wanted_slab_bytes = 0;
  int64_t most_held_bytes = 0;  // of device memory, within its budget
  OwnerId part = kNobody;       // a bound within the job
  bool has_claim = true;
  std::optional<int64_t> unused_until_ns;  // end of an unused claim
  bool unused_in_turns = false;            // it waited for its turn when that was last looked at
  int64_t wanted_without_claim = 0;
  std::optional<Shares::Place> place;
  std::optional<protocol::TurnState> sent_turn;  // nullopt: shares, and the job need not hear it
  int64_t turn_sent_ns = 0;
  protocol::TurnUse turns;
  protocol::PlanUse plans;
  protocol::SpillUse spill;
  uint64_t spill_serial = 0;     // of the newest file that it was given, or says that it has
  int64_t spill_file_bytes = 0;  // of the file that it was given; 0: none
  int64_t spill_given_ns = 0;    // or called back, or last written to
  int64_t spill_seen_bytes = 0;  // written, at the last look
  int64_t no_spill_until_ns = 0;
  bool is_called_back = false;
  std::optional<int64_t> rests_since_ns;  // idle, or waits for its turn
  protocol::LostTime lost;
};

// By which socket a session came. Only through kAll may anybody operate the node: in containers
// many are root. kAllocation: the socket of one allocation, for its jobs alone.
enum class Entrance : uint8_t { kAll, kJobsOnly, kAllocation };

enum class SessionState : uint8_t { kNew, kJob, kOperator, kDetached };

struct Session {
  SessionId id{};
  SessionState state = SessionState::kNew;
  Entrance entrance = Entrance::kAll;
  std::string allocation;                      // if kAllocation
  std::unique_ptr<protocol::Channel> channel;  // null: detached
  std::unique_ptr<Peer> peer;
  JobId job{};        // if kJob or kDetached
  std::string part;   // a Slurm step or a pod's container
  std::string group;  // folder of its job's own control group; empty: it has none
  Rate messages;
  std::map<uint32_t, Registration> registrations;  // by the client's device number
  std::vector<protocol::Admission> unsent_admissions;
  size_t unread_answers = 0;  // at most so many; an operator's
  int64_t since_ns = 0;
  int64_t heard_ns = 0;  // last message
  uint16_t version = 1;
  int64_t usage_interval_ms = 0;  // as it was told; a reload changes only that of later sessions
  bool is_leaving = false;
  std::set<protocol::SlabName> not_named;  // slabs by our records that it has not named yet

  Registration* Find(uint32_t number);
  uid_t uid() const { return peer->uid(); }
  pid_t pid() const { return peer->pid(); }
};

inline TenantProcess ProcessOf(const Session& session, DeviceId device) {
  return {session.job, session.id, device};
}

inline bool KnowsShares(const Session& session) {
  constexpr uint16_t kSharesVersion = 2;
  return session.state != SessionState::kOperator && session.version >= kSharesVersion;
}

// As reported, in steps: small changes have no effect.
Demand DemandOf(const Registration& registration);

}  // namespace spillway::agent
