// What must survive the agent.
#pragma once

#include <map>
#include <set>
#include <string>

#include "agent/config/config.h"
#include "protocol/message.h"

namespace spillway::agent {

struct ExpectedJob {
  TermsChange terms;
  std::map<std::string, TermsChange> parts = {};
  protocol::JobTotals totals = {};
  bool operator==(const ExpectedJob&) const = default;
};

struct Allocation {
  TermsChange limits = {};          // of device and host memory
  bool is_named = false;            // its manager names its jobs; otherwise the first one has it
  std::set<std::string> jobs = {};  // keys
  bool operator==(const Allocation&) const = default;
};

struct SavedState {
  bool draining = false;
  std::map<std::string, TermsChange> terms;            // by the job's key (agent/identity)
  std::map<std::string, ExpectedJob> expected = {};    // likewise
  std::map<std::string, Allocation> allocations = {};  // by name
  // Of the machine; after another one nobody expects these jobs, and the allocations are gone.
  std::string boot = {};
  bool operator==(const SavedState&) const = default;
};

}  // namespace spillway::agent
