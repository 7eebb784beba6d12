// Stops a program before it receives bytes that a replay made wrong.
//
// A replay of a kernel that only experiments describe is compared with what was dropped
// (execute/replay_checks.h).
#pragma once

#include "interposer/driver/cuda_abi.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {

void SayResultsAreWrong(interposer::JobMemory* job);

// The call's answer, or CUDA_ERROR_LAUNCH_FAILED for good once a replay was wrong.
inline CUresult UnlessWrong(CUresult result) {
  interposer::JobMemory* const wrong =
      interposer::FindJob([](interposer::JobMemory* job) { return job->view().IsWrong(); });
  if (!wrong) return result;
  SayResultsAreWrong(wrong);
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace spillway::entry
