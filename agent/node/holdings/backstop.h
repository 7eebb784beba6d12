// The driver's hard limits above jobs' budgets, against memory that evades the preload. Decides
// them; HardLimits sets them.
//
// Invariants
//  1. A limit is what a group's processes are budgeted, and a reserve for each of them: their
//     contexts, kernels and libraries. It rises before a grant that grows is sent, and falls after
//     a process has confirmed that it let go.
//  2. Only a job with a control group of its own has one (identity/control_group.h): none of a
//     local job, nor of a group with processes of two jobs.
//  3. A grant waits at most kPatienceNs for its limit, and not at all where somebody else set one,
//     or the driver refuses.
//  4. In the period after a start nothing is set or cleared: jobs that return keep theirs.
#pragma once

#include <map>
#include <memory>

#include "agent/node/hard_limits.h"
#include "agent/node/services.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/resume_period.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

// Pure. `before`: the last answer.
WantedLimits HardLimitsFor(const SessionTable& table, const Arbiter& arbiter,
                           const NodeFacts& facts, const WantedLimits& before);

class Backstop {
 public:
  static constexpr int64_t kPatienceNs = 2'000'000'000;
  static constexpr int64_t kStepBytes = int64_t{64} << 20;  // limits are rounded up to it
  static constexpr int64_t kLowerAfterNs = 1'000'000'000;   // budgets go up and down

  struct Sources {
    const NodeFacts* facts;
    const SessionTable* table;
    const Arbiter* arbiter;
    const ResumePeriod* resume;
    NodeServices* services;
    HardLimits* limits;  // null: none
  };
  explicit Backstop(const Sources& sources) : from_(sources) {}

  // After the arbiter has decided, and before its grants are sent.
  void Settle(bool grants_changed, int64_t now_ns);
  // Whether that grant may be sent.
  bool Allows(const Session& session, const Registration& registration,
              const GrantDecision& decision, int64_t now_ns) const;
  // Without the limits that the agent set itself.
  std::shared_ptr<const DeviceProcesses> WithoutOwn(
      std::shared_ptr<const DeviceProcesses> processes) const;
  // Adds the limits to the jobs' tenancies.
  void AddTo(NodeReport& report) const;

 private:
  void NoteShortages(int64_t now_ns);
  LimitPlace PlaceOf(const Session& session, DeviceId device) const;
  bool IsShort(const LimitPlace& place, int64_t wanted_bytes) const;

  const Sources from_;
  WantedLimits wanted_;
  std::shared_ptr<const LimitViews> views_ = std::make_shared<const LimitViews>();
  std::map<LimitPlace, int64_t> short_since_ns_;  // limits that are too low for what is budgeted
  int64_t next_lower_ns_ = 0;
  bool has_warned_ = false;
};

}  // namespace spillway::agent
