// The messages between a job's process, an operator and the node agent, as plain values.
//
// Invariants
//  1. Every message is one frame of kFrameBytes (codec.h) on a SOCK_SEQPACKET connection. Larger
//     payloads travel in a sealed memfd beside it (bulk.h).
//  2. A field keeps its meaning in all versions. Hello, Error and the header never change layout.
//  3. A kind is sent only in sessions whose version has it (VersionOf).
//  4. The agent trusts no identity in a message; identities come from the socket (agent/identity).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "protocol/text.h"

namespace spillway::protocol {

inline constexpr uint16_t kOldestVersion = 1;
inline constexpr uint16_t kNewestVersion = 12;
inline constexpr uint32_t kMostDevices = 64;
inline constexpr int64_t kMostBytes = int64_t{1} << 56;
inline constexpr int32_t kMostPermille = 1000;

using JobName = Text<64>;
using Sentence = Text<160>;
using DeviceUuid = std::array<uint8_t, 16>;

enum class Role : uint8_t { kJob = 1, kOperator = 2 };

// Client's first message. `leader_pid` is the process that `spillway run` became, in the client's
// pid namespace; 0: none.
struct Hello {
  uint16_t oldest_version = kOldestVersion;
  uint16_t newest_version = kNewestVersion;
  Role role = Role::kJob;
  int32_t leader_pid = 0;
  Text<32> software = {};
  bool operator==(const Hello&) const = default;
};

// Agent's answer. A session that sends no news for `usage_interval_ms` is late, not dead.
struct Welcome {
  uint16_t version = kNewestVersion;
  uint64_t agent_instance = 0;  // changes with every start of the agent
  uint64_t session = 0;
  uint32_t usage_interval_ms = 0;
  JobName job = {};
  bool operator==(const Welcome&) const = default;
};

// Client starts to use a device; `device` is its number in all the session's messages. `held_*` is
// what an earlier agent instance granted and the process may still hold; 0 if new.
struct Register {
  uint32_t device = 0;
  DeviceUuid uuid = {};
  int64_t memory_bytes = 0;
  int64_t wanted_bytes = 0;
  int64_t own_limit_bytes = 0;  // the job never asks for more; 0: no such limit
  int64_t own_host_limit_bytes = 0;
  int64_t held_bytes = 0;
  int64_t held_host_bytes = 0;
  bool operator==(const Register&) const = default;
};

enum class AdmissionState : uint8_t { kAdmitted = 1, kQueued = 2, kRejected = 3 };

struct Admission {
  uint32_t device = 0;
  AdmissionState state = AdmissionState::kQueued;
  uint32_t position = 0;  // in the queue, from 1; 0: not queued
  Sentence reason = {};
  bool operator==(const Admission&) const = default;
};

enum class GrantReason : uint8_t {
  kFirst = 1,      // admitted
  kLent = 2,       // more: memory that other jobs do not need
  kReturned = 3,   // more: the guarantee restored
  kRevoked = 4,    // less: lent memory goes back to its guaranteed owner, or to a fairer share
  kPreempted = 5,  // less: for a job of higher priority
  kChanged = 6,    // changed by an operator or the configuration
  kKept = 7,       // unchanged from an earlier agent instance
};

// Agent: this process's new budget on a device. A smaller budget must be met by the deadline.
// Obeyed answers every grant; until then the agent counts the larger of both budgets.
struct Grant {
  uint32_t device = 0;
  uint64_t serial = 0;  // rises with every grant
  int64_t budget_bytes = 0;
  int64_t host_bytes = 0;
  int32_t link_permille = kMostPermille;  // share of each direction while other jobs use theirs
  uint32_t deadline_ms = 0;               // relative to now
  GrantReason reason = GrantReason::kFirst;
  bool operator==(const Grant&) const = default;
};

// Client: keeps to it until the next grant.
struct Obeyed {
  uint32_t device = 0;
  uint64_t serial = 0;
  int64_t held_bytes = 0;
  int64_t host_bytes = 0;
  bool operator==(const Obeyed&) const = default;
};

enum class Phase : uint8_t { kLearning = 1, kPlanned = 2, kReactive = 3, kPassThrough = 4 };

// Client: use of a device. Sent at intervals, and when `active` changes or it wants more than
// granted.
struct Usage {
  uint32_t device = 0;
  bool active = true;  // enqueued work within the last interval
  Phase phase = Phase::kReactive;
  int64_t wanted_bytes = 0;  // as if nothing were evicted
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

// Client: no message follows.
struct Goodbye {
  int32_t exit_code = 0;
  bool operator==(const Goodbye&) const = default;
};

enum class ErrorCode : uint8_t {
  kVersion = 1,          // no common version; this message has the agent's
  kMalformed = 2,        // not a frame, or a field out of range
  kOutOfOrder = 3,       // an unexpected message
  kTooManySessions = 4,  // in total, or of this user
  kTooFast = 5,          // too many messages or connections per second
  kNotPermitted = 6,     // an operator's request from a client that is none
  kUnknownDevice = 7,
  kAgentStops = 8,
  kTooManyDevices = 9,
};

struct Error {
  ErrorCode code = ErrorCode::kMalformed;
  uint16_t oldest_version = kOldestVersion;
  uint16_t newest_version = kNewestVersion;
  Sentence reason = {};
  bool operator==(const Error&) const = default;
};

enum class Question : uint8_t { kStatus = 1, kJobs = 2, kJob = 3, kConfig = 4 };
enum class Form : uint8_t { kText = 1, kJson = 2 };

// Operator: answered by a Document, or by a Done that refuses it.
struct Ask {
  Question question = Question::kStatus;
  Form form = Form::kText;
  uint16_t columns = 0;  // of the terminal; 0: unlimited
  JobName job = {};
  bool operator==(const Ask&) const = default;
};

// Agent, with a memfd.
struct Document {
  uint32_t schema = 1;
  uint64_t size_bytes = 0;
  bool operator==(const Document&) const = default;
};

inline constexpr int64_t kUnchanged = -1;

// Operator: a job's terms on one device or all. Fields with kUnchanged keep their values.
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

struct Done {
  Outcome outcome = Outcome::kDone;
  Sentence text = {};
  bool operator==(const Done&) const = default;
};

// The agent's name for a slab of the node's pool; it survives a restart of the agent.
enum class SlabName : uint64_t {};
inline constexpr size_t kMostSlabsAtOnce = 8;

struct SlabNames {
  uint32_t count = 0;  // at most kMostSlabsAtOnce; the rest is zero
  std::array<SlabName, kMostSlabsAtOnce> names = {};
  bool operator==(const SlabNames&) const = default;
};

// Client, version 2: asks for more bytes of the host pool, near a device. Slabs answer within the
// quota as they become available; otherwise nothing answers.
struct AskSlabs {
  uint32_t device = 0;
  int64_t size_bytes = 0;
  bool operator==(const AskSlabs&) const = default;
};

// Agent, version 2: the files come in the same order.
struct Slabs {
  uint32_t device = 0;
  int64_t slab_bytes = 0;  // of each
  int64_t page_bytes = 0;
  SlabNames slabs = {};
  bool operator==(const Slabs&) const = default;
};

// Client, version 2: these slabs are unmapped.
struct ReturnSlabs {
  SlabNames slabs = {};
  bool operator==(const ReturnSlabs&) const = default;
};

// Client, version 2, at a session's start: slabs from earlier sessions. The agent reclaims all that
// are not named by the message with `last`.
struct HeldSlabs {
  bool last = false;
  SlabNames slabs = {};
  bool operator==(const HeldSlabs&) const = default;
};

// Agent, version 2: the process's link slot, with the files of the terms and lanes (link_page.h).
struct LinkPlace {
  uint32_t device = 0;
  uint32_t layout = 0;
  uint32_t slot = 0;
  bool operator==(const LinkPlace&) const = default;
};

// Client, version 2: the process is exiting; it keeps what it holds until it has ended.
struct Leaving {
  int32_t exit_code = 0;
  bool operator==(const Leaving&) const = default;
};

// For a planning request and for a plan.
inline constexpr uint64_t kMostPlanBytes = uint64_t{64} << 20;
inline constexpr size_t kMostRecalled = 4;

// All but the budget are hashes.
struct PlanKey {
  uint64_t program = 0;      // and the kind of its device
  uint64_t fingerprint = 0;  // of the iteration
  uint64_t device = 0;       // with its share of the link and the strategy
  int64_t budget_bytes = 0;  // for movable memory
  bool operator==(const PlanKey&) const = default;
};

// Client, version 3: requests a plan; the sealed memfd has the request
// (scheduler/plan/plan_codec.h). A PlanReply with the same ticket always answers.
struct AskPlan {
  uint32_t device = 0;
  uint64_t ticket = 0;
  PlanKey key = {};
  uint32_t patience_ms = 0;  // drop the request if it has not started by then
  uint64_t size_bytes = 0;
  bool operator==(const AskPlan&) const = default;
};

enum class PlanOutcome : uint8_t {
  kMade = 1,
  kKept = 2,     // likewise; an earlier plan
  kNone = 3,     // the strategy found no plan
  kRefused = 4,  // the request is malformed
  kBusy = 5,     // too many requests wait, in total or of this user
  kExpired = 6,  // it waited longer than `patience_ms`
  // The planning process ended without an answer, or hit its limit of time or memory.
  kFailed = 7,
  kNotHere = 8,  // this agent does not plan
};

// Agent, version 3. The sealed memfd has the plan, if there is one.
struct PlanReply {
  uint32_t device = 0;
  uint64_t ticket = 0;
  PlanOutcome outcome = PlanOutcome::kNotHere;
  uint64_t size_bytes = 0;
  int64_t planning_ns = 0;
  Sentence reason = {};
  bool operator==(const PlanReply&) const = default;
};

struct RecallPlans {
  uint32_t device = 0;
  uint64_t program = 0;
  bool operator==(const RecallPlans&) const = default;
};

// Agent, version 3: the most recently used plans of different iterations, in sealed memfds.
struct RecalledPlans {
  uint32_t device = 0;
  uint64_t program = 0;
  uint32_t count = 0;
  std::array<uint64_t, kMostRecalled> sizes_bytes = {};  // zero beyond `count`
  bool operator==(const RecalledPlans&) const = default;
};

// Client, version 3: the host memory it would need without any device memory, including transfers
// in flight. Each granted byte of device memory reduces the need by one byte.
struct HostNeed {
  uint32_t device = 0;
  int64_t size_bytes = 0;
  bool operator==(const HostNeed&) const = default;
};

// The causes of stalls and of replanning, in Account's order.
inline constexpr std::array kStallCauseNames = {"demand", "late_prefetch", "no_memory", "pool_full",
                                                "idle",   "shrink",        "link_share"};
enum class ReplanReason : uint8_t { kDrift, kBudget, kLink, kProofs };
inline constexpr std::array kReplanReasonNames = {"drift", "budget_change", "link_share", "proofs"};

struct Account {
  uint32_t device = 0;
  int64_t ordinary_bytes = 0;  // host memory for evicted data that is not pinned
  // Since the process began.
  int64_t planned_to_host_bytes = 0;  // as planned
  int64_t pressure_to_host_bytes = 0;
  int64_t planned_to_device_bytes = 0;
  int64_t demand_to_device_bytes = 0;
  std::array<int64_t, kStallCauseNames.size()> stall_ns = {};
  int64_t prefetch_hits = 0;
  int64_t prefetches_late = 0;
  int64_t prefetches_unused = 0;
  std::array<int64_t, kReplanReasonNames.size()> replans = {};
  int64_t over_budget_allocations = 0;  // granted while the job wanted more than its budget
  bool operator==(const Account&) const = default;
};

// Upper bounds of the buckets for iteration times; a last bucket takes longer times.
inline constexpr std::array<double, 12> kStepSeconds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                                        1,     3,     10,   30,   100, 300};

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

// Agent, version 5: like Slabs, but the files are the driver's shareable handles
// (cuMemImportFromShareableHandle).
struct DriverSlabs {
  uint32_t device = 0;
  int64_t slab_bytes = 0;
  SlabNames slabs = {};
  bool operator==(const DriverSlabs&) const = default;
};

// Client, version 6: the program's peak allocated bytes so far. While that peak may still grow,
// Usage may claim more. For display, and for turns.
struct Footprint {
  uint32_t device = 0;
  int64_t allocated_bytes = 0;
  bool operator==(const Footprint&) const = default;
};

// Operator, version 7: the terms of a job that another manager, such as Slurm, is about to start.
// `job` is "slurm-1201" or "pod-UID". With `part` (a Slurm step): a bound of that part within its
// job. Unset fields are as in SetBudget. Done answers.
struct ExpectJob {
  JobName job = {};
  Text<32> part = {};
  int64_t guaranteed_bytes = kUnchanged;
  int64_t limit_bytes = kUnchanged;
  int64_t host_bytes = kUnchanged;
  int32_t weight = -1;
  int32_t priority_plus_one = 0;
  bool operator==(const ExpectJob&) const = default;
};

// Operator, version 7: the manager has ended the job, or the part. JobTotals answers for a job,
// Done for a part, and for a job that is not expected.
struct ForgetJob {
  JobName job = {};
  Text<32> part = {};
  bool operator==(const ForgetJob&) const = default;
};

struct JobTotals {
  JobName job = {};
  int64_t peak_bytes = 0;       // most device memory held at once, on one device
  int64_t allocated_bytes = 0;  // most that its programs had allocated there
  int64_t to_host_bytes = 0;
  int64_t to_device_bytes = 0;
  int64_t stall_ns = 0;
  int64_t refused_allocations = 0;
  bool operator==(const JobTotals&) const = default;
};

// Agent, version 8, before a grant: the most device memory that one workspace of cuDNN may take. It
// holds for the choices that the program makes from now on. Without one, a session's grants mean
// any size.
struct WorkspaceGrant {
  uint32_t device = 0;
  int64_t limit_bytes = kMostBytes;
  bool operator==(const WorkspaceGrant&) const = default;
};

// Client, version 8. For display only.
struct WorkspaceUse {
  uint32_t device = 0;
  int64_t idle_bytes = 0;        // device memory of idle workspaces, which leaves first
  int64_t dropped_bytes = 0;     // of idle workspaces, given up since the process began
  int64_t other_algorithms = 0;  // operations whose first choice was hidden
  bool operator==(const WorkspaceUse&) const = default;
};

// Operator, version 8: beside SetBudget, and answered like it.
struct SetWorkspace {
  JobName job = {};
  bool dry_run = false;
  int64_t limit_bytes = kMostBytes;
  bool operator==(const SetWorkspace&) const = default;
};

enum class TurnState : uint8_t {
  kShares = 1,  // no turns on this device
  kRuns = 2,
  kWaits = 3,  // calls that enqueue work or allocate wait; memory leaves as grants shrink
};

// Agent, version 9, before the grants that follow from it. A job that runs begins once its grant
// has `start_bytes`, or after `patience_ms`. Without one, a session's grants mean kShares.
struct Turn {
  uint32_t device = 0;
  TurnState state = TurnState::kShares;
  int64_t start_bytes = 0;
  uint32_t patience_ms = 0;
  Sentence reason = {};
  bool operator==(const Turn&) const = default;
};

// Client, version 9, at every usage interval while the device is in turns: its silence means that
// the process is stopped. Also when `parks` changes.
struct TurnUse {
  uint32_t device = 0;
  bool parks = false;  // pointers are opaque: evicted memory stays mapped on the host
  // Since the process began.
  int64_t operations = 0;  // launches, copies and allocations
  int64_t waited_ns = 0;   // calls waited for a turn
  int64_t turns = 0;       // that began after a wait
  bool operator==(const TurnUse&) const = default;
};

// Client, version 10: since the process began. For display only.
struct PlanUse {
  uint32_t device = 0;
  int64_t missed_iterations = 0;         // began after events unknown to their plan
  int64_t clean_bytes = 0;               // evicted without a copy: the host copy was valid
  int64_t clean_by_content_bytes = 0;    // likewise, as a fingerprint showed
  int64_t changed_by_content_bytes = 0;  // copied, as a fingerprint showed a change
  int64_t recomputable_bytes = 0;        // evicted without a copy, to be recomputed
  int64_t recomputes = 0;                // launches repeated for them
  int64_t recomputed_bytes = 0;
  int64_t mismatched_recomputes = 0;  // made other bytes than before
  int64_t fingerprinted_bytes = 0;
  int64_t fingerprint_ns = 0;      // the device's time, an estimate
  int64_t experiments = 0;         // around launches of kernels that nobody documents
  int64_t refuted_operations = 0;  // found not to make the same bytes again
  int64_t insured_recomputes = 0;  // with a host copy beside them
  bool operator==(const PlanUse&) const = default;
};

// Agent, version 11, with one file: host copies of idle memory may go there, up to `size_bytes`.
// They come back when the job needs them, or at ReturnSpilled. One file per device at a time.
struct SpillFile {
  uint32_t device = 0;
  uint64_t serial = 0;  // from 1; rises with every file
  int64_t size_bytes = 0;
  bool operator==(const SpillFile&) const = default;
};

// Agent, version 11: the bytes in the file are to be back in host memory soon.
struct ReturnSpilled {
  uint32_t device = 0;
  bool operator==(const ReturnSpilled&) const = default;
};

// Client, version 11. `serial`: the file that it has; 0: none, also when it has closed the last
// one. `file_bytes`: its size.
struct SpillUse {
  uint32_t device = 0;
  uint64_t serial = 0;
  int64_t stored_bytes = 0;          // in the file only
  int64_t resident_twice_bytes = 0;  // on the device, with a host copy
  // Since the process began.
  int64_t written_bytes = 0;
  int64_t read_bytes = 0;
  int64_t failures = 0;        // of the file: blocks that it did not take, or did not give back
  int64_t released_bytes = 0;  // host copies of resident memory, given up without pressure
  int64_t file_bytes = 0;
  bool operator==(const SpillUse&) const = default;
};

// Client, version 11: time lost to moving memory, by the device's clock, since the process began.
// Both pairs are lower bounds, of different times: waits of calls, and iterations that are
// followed.
struct LostTime {
  uint32_t device = 0;
  int64_t waited_ns = 0;
  int64_t waited_of_ns = 0;       // until the end of the last wait
  int64_t steps_lost_ns = 0;      // beyond the time of their operations
  int64_t steps_repeated_ns = 0;  // of it, for recomputing
  int64_t steps_ns = 0;
  bool operator==(const LostTime&) const = default;
};

// Operator, version 12: a socket of its own for an allocation, such as a container or a claim of
// pods. `job` is one of the jobs that may use it ("pod-UID"), once more for each further one;
// empty: the first job that connects has it. The limits bind these jobs beside all others that they
// have. ListenerPlace answers, or a Done that refuses.
struct OpenListener {
  JobName allocation = {};  // of letters, digits, '-' and '.'
  JobName job = {};
  int64_t limit_bytes = kUnchanged;  // on each device
  int64_t host_bytes = kUnchanged;
  bool operator==(const OpenListener&) const = default;
};

// Operator, version 12: its socket and folder go; sessions that came through it go on. Done
// answers.
struct CloseListener {
  JobName allocation = {};
  bool operator==(const CloseListener&) const = default;
};

// Agent, version 12. Containers get the socket's folder, which has nothing else.
struct ListenerPlace {
  Text<108> socket = {};
  bool operator==(const ListenerPlace&) const = default;
};

// In the order of their wire numbers, from 1.
using Message =
    std::variant<Hello, Welcome, Register, Admission, Grant, Obeyed, Usage, Goodbye, Error, Ask,
                 Document, SetBudget, Control, Done, AskSlabs, Slabs, ReturnSlabs, HeldSlabs,
                 LinkPlace, Leaving, AskPlan, PlanReply, RecallPlans, RecalledPlans, HostNeed,
                 Account, StepTimes, DriverSlabs, Footprint, ExpectJob, ForgetJob, JobTotals,
                 WorkspaceGrant, WorkspaceUse, SetWorkspace, Turn, TurnUse, PlanUse, SpillFile,
                 ReturnSpilled, SpillUse, LostTime, OpenListener, CloseListener, ListenerPlace>;

inline constexpr size_t kKindsOfVersion1 = 14, kKindsOfVersion2 = 20, kKindsOfVersion3 = 25,
                        kKindsOfVersion4 = 27, kKindsOfVersion5 = 28, kKindsOfVersion6 = 29,
                        kKindsOfVersion7 = 32, kKindsOfVersion8 = 35, kKindsOfVersion9 = 37,
                        kKindsOfVersion10 = 38, kKindsOfVersion11 = 42;
constexpr uint16_t VersionOf(size_t kind) {
  return kind <= kKindsOfVersion1    ? 1
         : kind <= kKindsOfVersion2  ? 2
         : kind <= kKindsOfVersion3  ? 3
         : kind <= kKindsOfVersion4  ? 4
         : kind <= kKindsOfVersion5  ? 5
         : kind <= kKindsOfVersion6  ? 6
         : kind <= kKindsOfVersion7  ? 7
         : kind <= kKindsOfVersion8  ? 8
         : kind <= kKindsOfVersion9  ? 9
         : kind <= kKindsOfVersion10 ? 10
         : kind <= kKindsOfVersion11 ? 11
                                     : 12;
}

}  // namespace spillway::protocol
