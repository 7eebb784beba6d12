// What a process that makes a plan may use.
#pragma once

#include <cstdint>

namespace spillway::agent {

struct WorkerLimits {
  int64_t memory_bytes = 0;  // of addresses
  int64_t cpu_seconds = 0;
};

// How a worker ends, as its exit code; any other end is a failure.
enum class WorkerEnd : int {
  kMade = 0,      // the answer is a plan
  kNone = 10,     // the answer says why there is none
  kRefused = 11,  // the answer says what is wrong with the request
  kMemory = 12,
  kNotConfined = 13,  // the kernel did not take its rights away: it did nothing
  kNotStarted = 14,   // the answer says which error kept the program from running
};

// Its files: the request, and an empty memfd for the answer.
inline constexpr int kRequestFile = 3, kAnswerFile = 4;

}  // namespace spillway::agent
