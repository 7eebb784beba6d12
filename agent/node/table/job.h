// A job: the processes that the operator sees as one.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/config/config.h"
#include "agent/node/node_report.h"

namespace spillway::agent {

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

  // Its processes can take any user id.
  bool IsContained() const {
    return source == JobSource::kKubernetes || source == JobSource::kContainer;
  }
};

}  // namespace spillway::agent
