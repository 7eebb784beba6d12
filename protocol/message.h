// What a job's process, an operator and the node agent say to each other, as plain values.
//
// Made and read on any thread. docs/protocol.md tells the same as a story, with the bytes of every
// message.
//
// Invariants
//  1. Every message is one frame of kFrameBytes (codec.h) on a SOCK_SEQPACKET connection; what is
//  larger travels in a
//     sealed memfd beside a Document (bulk.h).
//  2. A field means the same in every version that has it. Hello, Error and the header never change
//  their layout.
//  3. A kind is sent only in sessions of a version that has it (VersionOf).
//  4. Nothing here is believed because a client says it: who a client is comes from the socket
//  (agent/identity).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <variant>

namespace spillway::protocol {

inline constexpr uint16_t kOldestVersion = 1;
inline constexpr uint16_t kNewestVersion = 6;
inline constexpr uint32_t kMostDevices = 64;
inline constexpr int64_t kMostBytes = int64_t{1} << 56;
inline constexpr int32_t kMostPermille = 1000;

// Printable ASCII, at most N - 1 characters; the rest is zero.
template <size_t N>
struct Text {
  char bytes[N] = {};

  Text() = default;
  // Cuts what is too long; what is not printable becomes '?', so that no name can forge a line of a
  // log.
  template <class Words>
  requires std::convertible_to<const Words&, std::string_view> Text(const Words& words) {
    const std::string_view text = words;
    for (size_t i = 0; i < text.size() && i + 1 < N; ++i)
      bytes[i] = text[i] >= 0x20 && text[i] <= 0x7e ? text[i] : '?';
  }
  std::string_view view() const { return {bytes, strnlen(bytes, N)}; }
  bool operator==(const Text&) const = default;
};

using JobName = Text<64>;
using Sentence = Text<160>;
using DeviceUuid = std::array<uint8_t, 16>;

enum class Role : uint8_t { kJob = 1, kOperator = 2 };

// Client's first message. `leader_pid`: the process that `spillway run` became, as the client's own
// pid namespace counts; 0: none.
struct Hello {
  uint16_t oldest_version = kOldestVersion;
  uint16_t newest_version = kNewestVersion;
  Role role = Role::kJob;
  int32_t leader_pid = 0;
  Text<32> software = {};
  bool operator==(const Hello&) const = default;
};

// Agent's answer. A session that says nothing for `usage_interval_ms` while it has something new is
// late, not dead.
struct Welcome {
  uint16_t version = kNewestVersion;
  uint64_t agent_instance = 0;  // another number after every start of the agent
  uint64_t session = 0;
  uint32_t usage_interval_ms = 0;
  JobName job = {};
  bool operator==(const Welcome&) const = default;
};

// A process begins to use a device. `device` is the client's own number for it, used in all
// messages of the session. `held_*`: what an earlier instance of the agent granted and the process
// may still hold; 0 for a new one.
struct Register {
  uint32_t device = 0;
  DeviceUuid uuid = {};
  int64_t memory_bytes = 0;
  int64_t wanted_bytes = 0;
  int64_t own_limit_bytes = 0;  // the job asks for no more than this; 0: no limit of its own
  int64_t own_host_limit_bytes = 0;
  int64_t held_bytes = 0;
  int64_t held_host_bytes = 0;
  bool operator==(const Register&) const = default;
};

enum class AdmissionState : uint8_t { kAdmitted = 1, kQueued = 2, kRejected = 3 };

// Agent: where a registration stands. Sent when it changes.
struct Admission {
  uint32_t device = 0;
  AdmissionState state = AdmissionState::kQueued;
  uint32_t position = 0;  // in the queue, from 1; 0 when it is not queued
  Sentence reason = {};
  bool operator==(const Admission&) const = default;
};

enum class GrantReason : uint8_t {
  kFirst = 1,      // admitted
  kLent = 2,       // more, from what is not needed elsewhere
  kReturned = 3,   // more, as the guarantee says
  kRevoked = 4,    // less: lent memory is wanted by whom it is guaranteed to, or by a fairer share
  kPreempted = 5,  // less: a job of higher priority needs it
  kChanged = 6,    // an operator or the configuration says so
  kKept = 7,       // the same as an earlier instance of the agent had granted
};

// Agent: the budget of this process on a device, from now on. Less than before is to be obeyed by
// the deadline and answered with Obeyed in any case; the agent counts the larger of both until
// then.
struct Grant {
  uint32_t device = 0;
  uint64_t serial = 0;  // rises with every grant of the session
  int64_t budget_bytes = 0;
  int64_t host_bytes = 0;
  int32_t link_permille = kMostPermille;  // of the link, each direction, while others use theirs
  uint32_t deadline_ms = 0;               // from now
  GrantReason reason = GrantReason::kFirst;
  bool operator==(const Grant&) const = default;
};

// Client: holds no more than `held_bytes` and, until the next grant, never will.
struct Obeyed {
  uint32_t device = 0;
  uint64_t serial = 0;
  int64_t held_bytes = 0;
  int64_t host_bytes = 0;
  bool operator==(const Obeyed&) const = default;
};

enum class Phase : uint8_t { kLearning = 1, kPlanned = 2, kReactive = 3, kPassThrough = 4 };

// Client: how a device is used. Sent when `active` changes, when more is wanted than granted, and
// at intervals.
struct Usage {
  uint32_t device = 0;
  bool active = true;  // work was enqueued within the last interval
  Phase phase = Phase::kReactive;
  int64_t wanted_bytes = 0;  // with nothing evicted
  int64_t resident_bytes = 0;
  int64_t unmovable_bytes = 0;
  int64_t host_bytes = 0;
  // Since the process began.
  int64_t to_host_bytes = 0;
  int64_t to_device_bytes = 0;
  int64_t stall_ns = 0;
  int64_t iterations = 0;
  int64_t demand_fetches = 0;
  int64_t refused_allocations = 0;
  bool operator==(const Usage&) const = default;
};

// Client: all its memory is free, nothing follows.
struct Goodbye {
  int32_t exit_code = 0;
  bool operator==(const Goodbye&) const = default;
};

enum class ErrorCode : uint8_t {
  kVersion = 1,          // no common version; the agent's are in the message
  kMalformed = 2,        // a frame that is none, or a field outside its range
  kOutOfOrder = 3,       // a message that may not come now
  kTooManySessions = 4,  // in all, or of this user
  kTooFast = 5,          // more messages or connections per second than allowed
  kNotPermitted = 6,     // an operator's request from somebody who is none
  kUnknownDevice = 7,
  kAgentStops = 8,
  kTooManyDevices = 9,
};

// Agent: why it closes the connection.
struct Error {
  ErrorCode code = ErrorCode::kMalformed;
  uint16_t oldest_version = kOldestVersion;
  uint16_t newest_version = kNewestVersion;
  Sentence reason = {};
  bool operator==(const Error&) const = default;
};

enum class Question : uint8_t { kStatus = 1, kJobs = 2, kJob = 3, kConfig = 4 };
enum class Form : uint8_t { kText = 1, kJson = 2 };

// Operator: tell me. Answered by a Document, or by Done with a refusal.
struct Ask {
  Question question = Question::kStatus;
  Form form = Form::kText;
  uint16_t columns = 0;  // of the terminal; 0: as wide as need be
  JobName job = {};
  bool operator==(const Ask&) const = default;
};

// Agent: the answer, in the memfd that comes with it.
struct Document {
  uint32_t schema = 1;
  uint64_t size_bytes = 0;
  bool operator==(const Document&) const = default;
};

inline constexpr int64_t kUnchanged = -1;

// Operator: a job's terms on one device, or on all. What is kUnchanged stays.
struct SetBudget {
  JobName job = {};
  int32_t device = -1;  // the agent's number; -1: all
  bool dry_run = false;
  int64_t guaranteed_bytes = kUnchanged;
  int64_t limit_bytes = kUnchanged;
  int64_t host_bytes = kUnchanged;
  int32_t link_permille = -1;
  int32_t weight = -1;
  int32_t priority_plus_one = 0;  // 0: unchanged
  bool operator==(const SetBudget&) const = default;
};

enum class Action : uint8_t { kDrain = 1, kUndrain = 2, kReload = 3, kLogLevel = 4 };

struct Control {
  Action action = Action::kDrain;
  Text<16> value = {};  // kLogLevel: trace, debug, info, warn or error
  bool operator==(const Control&) const = default;
};

enum class Outcome : uint8_t { kDone = 1, kWouldBeDone = 2, kRefused = 3, kUnknownJob = 4 };

// Agent: what became of a SetBudget or Control, or why an Ask has no document.
struct Done {
  Outcome outcome = Outcome::kDone;
  Sentence text = {};
  bool operator==(const Done&) const = default;
};

// What the agent calls a slab of the node's pool: the same after a restart of the agent.
enum class SlabName : uint64_t {};
inline constexpr size_t kMostSlabsAtOnce = 8;

struct SlabNames {
  uint32_t count = 0;  // at most kMostSlabsAtOnce; the rest is zero
  std::array<SlabName, kMostSlabsAtOnce> names = {};
  bool operator==(const SlabNames&) const = default;
};

// Client, version 2: slabs of the host pool for so much more than it has, near a device. Answered
// by Slabs as they are there, within the quota; by nothing where there are none.
struct AskSlabs {
  uint32_t device = 0;
  int64_t size_bytes = 0;
  bool operator==(const AskSlabs&) const = default;
};

// Agent, version 2: slabs that are this process's until it returns them; with them come their
// files, in the same order.
struct Slabs {
  uint32_t device = 0;
  int64_t slab_bytes = 0;  // of each
  int64_t page_bytes = 0;
  SlabNames slabs = {};
  bool operator==(const Slabs&) const = default;
};

// Client, version 2: it uses them no more and has unmapped them.
struct ReturnSlabs {
  SlabNames slabs = {};
  bool operator==(const ReturnSlabs&) const = default;
};

// Client, version 2, at the beginning of a session: which slabs it has from sessions before. What
// it does not name until `last` is the agent's again.
struct HeldSlabs {
  bool last = false;
  SlabNames slabs = {};
  bool operator==(const HeldSlabs&) const = default;
};

// Agent, version 2: the process's place at a device's link; with it come the files of the terms and
// of the lanes (link_page.h).
struct LinkPlace {
  uint32_t device = 0;
  uint32_t layout = 0;
  uint32_t slot = 0;
  bool operator==(const LinkPlace&) const = default;
};

// Client, version 2: the process is about to end, by exit; what it holds stays its own until it
// has.
struct Leaving {
  int32_t exit_code = 0;
  bool operator==(const Leaving&) const = default;
};

// Of a request to plan, and of a plan.
inline constexpr uint64_t kMostPlanBytes = uint64_t{64} << 20;
inline constexpr size_t kMostRecalled = 4;

// Under what a plan is kept, as its job says; all numbers but the budget are hashes.
struct PlanKey {
  uint64_t program = 0;      // with the kind of device that it runs on
  uint64_t fingerprint = 0;  // of the iteration
  uint64_t device = 0;       // with the part of its link, and the strategy
  int64_t budget_bytes = 0;  // for what may move
  bool operator==(const PlanKey&) const = default;
};

// Client, version 3: a plan is wanted; the request (scheduler/plan/plan_codec.h) is in the sealed
// memfd that comes with it. Answered by a PlanReply of the same ticket, whatever becomes of it.
struct AskPlan {
  uint32_t device = 0;
  uint64_t ticket = 0;  // the client's own number
  PlanKey key = {};
  uint32_t patience_ms = 0;  // a request that has not been begun by then is not wanted any more
  uint64_t size_bytes = 0;
  bool operator==(const AskPlan&) const = default;
};

enum class PlanOutcome : uint8_t {
  kMade = 1,     // the plan is in the memfd
  kKept = 2,     // likewise; it was made earlier
  kNone = 3,     // the strategy found none
  kRefused = 4,  // the request is none
  kBusy = 5,     // too many requests wait, in all or of this user
  kExpired = 6,  // it waited longer than its client's patience
  kFailed = 7,  // the process that planned ended without an answer, or reached its limit of time or
                // memory
  kNotHere = 8,  // this agent does not plan
};

// Agent, version 3. With a plan comes the sealed memfd that holds it.
struct PlanReply {
  uint32_t device = 0;
  uint64_t ticket = 0;
  PlanOutcome outcome = PlanOutcome::kNotHere;
  uint64_t size_bytes = 0;
  int64_t planning_ns = 0;
  Sentence reason = {};
  bool operator==(const PlanReply&) const = default;
};

// Client, version 3: what is kept of the program's earlier runs?
struct RecallPlans {
  uint32_t device = 0;
  uint64_t program = 0;
  bool operator==(const RecallPlans&) const = default;
};

// Agent, version 3: the plans used last, of different iterations, each in a sealed memfd. None is
// an answer.
struct RecalledPlans {
  uint32_t device = 0;
  uint64_t program = 0;
  uint32_t count = 0;
  std::array<uint64_t, kMostRecalled> sizes_bytes = {};  // beyond the count: zero
  bool operator==(const RecalledPlans&) const = default;
};

// Client, version 3: the host memory that it needs beside what it has of the device: for all that
// it wants, and for what is on its way in and out. Each byte of device memory that it is granted
// makes it one byte less.
struct HostNeed {
  uint32_t device = 0;
  int64_t size_bytes = 0;  // with nothing of the device
  bool operator==(const HostNeed&) const = default;
};

// Why a call of the program waited for memory, and why a job asked for another plan, as Account
// tells them in this order.
inline constexpr std::array kStallCauseNames = {"demand", "late_prefetch", "no_memory", "pool_full",
                                                "idle",   "shrink",        "link_share"};
enum class ReplanReason : uint8_t { kDrift, kBudget, kLink, kProofs };
inline constexpr std::array kReplanReasonNames = {"drift", "budget_change", "link_share", "proofs"};

// Client, version 4, after a Usage: the parts of what that sums up, and what else there is to know.
struct Account {
  uint32_t device = 0;
  int64_t ordinary_bytes = 0;  // host memory that is not pinned, for what is away
  // Since the process began.
  int64_t planned_to_host_bytes = 0;  // as a plan said
  int64_t pressure_to_host_bytes = 0;
  int64_t planned_to_device_bytes = 0;
  int64_t demand_to_device_bytes = 0;
  std::array<int64_t, kStallCauseNames.size()> stall_ns = {};
  int64_t prefetch_hits = 0;
  int64_t prefetches_late = 0;
  int64_t prefetches_unused = 0;
  std::array<int64_t, kReplanReasonNames.size()> replans = {};
  int64_t over_budget_allocations = 0;  // granted while more was wanted than the budget
  bool operator==(const Account&) const = default;
};

// Upper bounds of the times that iterations are sorted by; longer ones come last.
inline constexpr std::array<double, 12> kStepSeconds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                                        1,     3,     10,   30,   100, 300};

// Client, version 4: how long the iterations of its plans took, since the process began.
struct StepTimes {
  uint32_t device = 0;
  int64_t sum_ns = 0;
  std::array<int64_t, kStepSeconds.size() + 1> counts = {};
  bool operator==(const StepTimes&) const = default;
};
constexpr size_t StepBucketOf(int64_t duration_ns) {
  size_t at = 0;
  while (at < kStepSeconds.size() && static_cast<double>(duration_ns) > kStepSeconds[at] * 1e9)
    ++at;
  return at;
}

// Agent, version 5: as Slabs; the files are not memory, but the driver's name for it
// (cuMemImportFromShareableHandle).
struct DriverSlabs {
  uint32_t device = 0;
  int64_t slab_bytes = 0;  // of each
  SlabNames slabs = {};
  bool operator==(const DriverSlabs&) const = default;
};

// Client, version 6: what its program has allocated, at most so far. Usage may claim more, while
// that may still grow. Nothing is decided by it.
struct Footprint {
  uint32_t device = 0;
  int64_t allocated_bytes = 0;
  bool operator==(const Footprint&) const = default;
};

// In the order of their numbers on the wire, from 1.
using Message =
    std::variant<Hello, Welcome, Register, Admission, Grant, Obeyed, Usage, Goodbye, Error, Ask,
                 Document, SetBudget, Control, Done, AskSlabs, Slabs, ReturnSlabs, HeldSlabs,
                 LinkPlace, Leaving, AskPlan, PlanReply, RecallPlans, RecalledPlans, HostNeed,
                 Account, StepTimes, DriverSlabs, Footprint>;

inline constexpr size_t kKindsOfVersion1 = 14, kKindsOfVersion2 = 20, kKindsOfVersion3 = 25,
                        kKindsOfVersion4 = 27, kKindsOfVersion5 = 28;
// The first version that has a kind, by its number on the wire.
constexpr uint16_t VersionOf(size_t kind) {
  return kind <= kKindsOfVersion1   ? 1
         : kind <= kKindsOfVersion2 ? 2
         : kind <= kKindsOfVersion3 ? 3
         : kind <= kKindsOfVersion4 ? 4
         : kind <= kKindsOfVersion5 ? 5
                                    : 6;
}

}  // namespace spillway::protocol
