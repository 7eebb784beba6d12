// What a planning process may use, and how it ended.
#pragma once

#include <cstdint>

namespace spillway::agent {

struct WorkerLimits {
  int64_t memory_bytes = 0;  // of address space
  int64_t cpu_seconds = 0;
};

// A worker's exit code; any other end is a failure.
enum class WorkerEnd : int {
  kMade = 0,
  kNone = 10,     // the answer says why there is no plan
  kRefused = 11,  // the answer says what is wrong
  kMemory = 12,
  kNotConfined = 13,  // the kernel refused to take rights away; nothing was done
  kNotStarted = 14,   // the answer is the errno of the failed start
};

// The worker's descriptors: the request, and an empty memfd for the answer.
inline constexpr int kRequestFile = 3, kAnswerFile = 4;

}  // namespace spillway::agent
