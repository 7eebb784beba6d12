// What operators have set and the node would forget when the agent ends: drained or not, and the
// terms of running jobs. Values.
#pragma once

#include <map>
#include <string>

#include "agent/config/config.h"

namespace spillway::agent {

struct SavedState {
  bool draining = false;
  std::map<std::string, TermsChange> terms;  // by the job's key (agent/identity)
  bool operator==(const SavedState&) const = default;
};

}  // namespace spillway::agent
