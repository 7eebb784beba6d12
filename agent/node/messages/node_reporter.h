// Reads the node's visible state from its parts, as values. Changes none.
#pragma once

#include "agent/node/holdings/allocations.h"
#include "agent/node/holdings/backstop.h"
#include "agent/node/holdings/job_owners.h"
#include "agent/node/planning.h"
#include "agent/node/sessions/device_turns.h"
#include "agent/node/sessions/session_spill.h"
#include "agent/node/table/resume_period.h"
#include "agent/node/table/session_table.h"
#include "agent/node/table/unknown_devices.h"

namespace spillway::agent {

class NodeReporter {
 public:
  struct Sources {
    const NodeFacts* facts;
    const SessionTable* table;
    const Arbiter* arbiter;
    const DeviceTurns* turns;
    const SessionSpill* spill;
    const JobOwners* owners;
    const Allocations* allocations;
    const UnknownDevices* unknown;
    const ResumePeriod* resume;
    const NodeCounters* counters;
    const Shares* shares;
    const Planning* planning;
    const Backstop* backstop;
  };
  explicit NodeReporter(const Sources& sources) : from_(sources) {}

  NodeReport Report(int64_t now_ns) const;

 private:
  void AddDevices(NodeReport& report) const;
  void AddJobs(int64_t now_ns, NodeReport& report) const;

  const Sources from_;
};

}  // namespace spillway::agent
