// A worker's request and answer (worker_limits.h), for each kind of worker. One thread.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "agent/planning/worker_limits.h"
#include "base/file.h"
#include "protocol/message.h"

namespace spillway::agent {

// Empty: there is none, or it is larger than a plan may be.
inline std::string WorkerRequest() {
  const off_t size = lseek(kRequestFile, 0, SEEK_END);
  if (size < 0 || static_cast<uint64_t>(size) > protocol::kMostPlanBytes) return "";
  return base::ReadFirst(kRequestFile, static_cast<size_t>(size)).value_or("");
}

// The worker's exit code.
inline int AnswerAsWorker(WorkerEnd end, std::string_view bytes) {
  return base::WriteAll(kAnswerFile, bytes) == 0 ? static_cast<int>(end) : EXIT_FAILURE;
}

}  // namespace spillway::agent
