// What must survive the agent.
#pragma once

#include <map>
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

struct SavedState {
  bool draining = false;
  std::map<std::string, TermsChange> terms;          // by the job's key (agent/identity)
  std::map<std::string, ExpectedJob> expected = {};  // likewise
  std::string boot = {};  // of the machine; after another one nobody expects these jobs
  bool operator==(const SavedState&) const = default;
};

}  // namespace spillway::agent
