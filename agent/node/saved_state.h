// The operators' settings that must survive the agent: draining, and terms of running jobs. Values.
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
