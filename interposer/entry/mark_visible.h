// After some calls the effects of work show without further calls (ledger/visible_work.h).
#pragma once

#include "interposer/entry/end_records.h"
#include "interposer/entry/reentry_guard.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::entry {

// For the answer of such a call.
inline CUresult MarkVisibleIf(CUresult result) {
  const ReentryGuard guard;
  if (result != CUDA_SUCCESS) return result;
  interposer::VisibleWork::MakeAllWorkVisible();
  return guard.IsOutermost() ? EndRecordsOfVisibleWork() : result;
}

}  // namespace spillway::entry
