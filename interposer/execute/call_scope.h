// A call that names device memory, from before the driver's function to behind it: the memory stays
// where it is meanwhile.
//
// Lives on the caller's stack, on one thread; scopes of one thread nest. The constructor makes the
// memory resident; End, or else the destructor, notes the call's place in its stream and lets the
// memory go.
//
// Invariants
//  1. While answer() is CUDA_SUCCESS everything the call names is mapped until End.
//  2. Of a call that was not admitted nothing is held, and the driver's function is not to be
//  called.
#pragma once

#include "interposer/execute/job_calls.h"
#include "interposer/execute/touch_set.h"
#include "interposer/ledger/transfer.h"

namespace spillway::interposer {

class CallScope {
 public:
  // `addresses` and what the facts lead to outlive the scope. A launch's may become more
  // (JobCalls::Begin).
  CallScope(JobCalls& calls, Addresses& addresses, StreamName stream, Effect effect,
            const CallFacts& facts = {})
      : calls_(calls),
        addresses_(addresses),
        effect_(effect),
        set_(facts),
        answer_(calls.Begin(&addresses, stream, effect, &set_)) {}
  ~CallScope() {
    if (answer_ == CUDA_SUCCESS && !has_ended_)
      End(CUDA_ERROR_UNKNOWN);  // as of a call that was not made
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // What the program is answered unless it is CUDA_SUCCESS (errors as of JobCalls::Begin).
  CUresult answer() const { return answer_; }
  // The call may use memory by addresses that it does not name itself.
  bool reaches() const { return set_.reaches; }

  // The driver has answered; `transfers` are what an accepted call puts into memory. True when what
  // a new kernel has done was looked at: the kernel is not new any more.
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
