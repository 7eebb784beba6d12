// Ends recompute records before something happens that no call shows: work that others see,
// unloaded kernels, captures.
//
// A wrong replay is found before a call shows its result (wrong_results.h). Where results show
// without a call (ledger/visible_work.h), nothing may be left to find.
#pragma once

#include <atomic>

#include "interposer/driver/cuda_abi.h"
#include "interposer/entry/wrong_results.h"
#include "interposer/ledger/visible_work.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {

// False if it fails.
inline bool EndRecords() {
  return !interposer::FindJob(
      [](interposer::JobMemory* job) { return !job->replays().EndRecords(); });
}

namespace internal {
inline constinit std::atomic<unsigned> changes_seen{0};  // of VisibleWork, with no record since
}

// No call of this thread may be in progress. An error if a replay was wrong, or if memory is
// lacking for what must be made again: the next call tries once more.
inline CUresult EndRecordsOfVisibleWork() {
  const unsigned changes = interposer::VisibleWork::changes();
  if (internal::changes_seen.load(std::memory_order_relaxed) == changes) [[likely]]
    return CUDA_SUCCESS;
  if (!EndRecords()) return CUDA_ERROR_OUT_OF_MEMORY;
  internal::changes_seen.store(changes, std::memory_order_relaxed);
  return UnlessWrong(CUDA_SUCCESS);
}

}  // namespace spillway::entry
