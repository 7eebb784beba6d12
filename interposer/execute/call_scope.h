// A call that names device memory, around the driver's function.
//
// Lives on the caller's stack; scopes of one thread nest. The constructor makes the memory
// resident. End, or else the destructor, notes the call's place in its stream and lets go.
//
// Invariants
//  1. While answer() is CUDA_SUCCESS, everything the call names is mapped until End.
//  2. A call that was not admitted holds nothing. The driver's function must not be called.
#pragma once

#include "interposer/execute/job_calls.h"
#include "interposer/execute/touch_set.h"
#include "interposer/ledger/transfer.h"

namespace spillway::interposer {

class CallScope {
 public:
  // `addresses` and what the facts point to outlive the scope. A launch's addresses may grow.
  CallScope(JobCalls& calls, Addresses& addresses, StreamName stream, Effect effect,
            const CallFacts& facts = {})
      : calls_(calls),
        addresses_(addresses),
        effect_(effect),
        set_(facts),
        answer_(calls.Begin(&addresses, stream, effect, &set_)) {}
  ~CallScope() {
    if (answer_ == CUDA_SUCCESS && !has_ended_) End(CUDA_ERROR_UNKNOWN);  // the call was not made
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // Errors as of JobCalls::Begin.
  CUresult answer() const { return answer_; }
  bool reaches() const { return set_.reaches; }

  // `transfers`: what an accepted call puts into memory. True when a post-launch scan found
  // nothing.
  bool End(CUresult result, const Transfers& transfers = {}) {
    has_ended_ = true;
    const bool ran = result == CUDA_SUCCESS;
    set_.failed = !ran;
    calls_.End(&set_, effect_);
    if (ran && !transfers.empty()) calls_.Wrote(transfers, set_);
    return set_.awaits_scan && calls_.EndNew(addresses_, set_, ran);
  }

 private:
  JobCalls& calls_;
  Addresses& addresses_;
  const Effect effect_;
  TouchSet set_;
  const CUresult answer_;
  bool has_ended_ = false;
};

}  // namespace spillway::interposer
