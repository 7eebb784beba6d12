// Keeps outputs on the device where an input of theirs is touched by an operation that was only
// seen to read it (Operation::presumed_reads). If that operation writes after all, nothing is lost.
//
// Typically such a touch follows soon: a norm's output waits for the backward pass, and the
// residual addition behind the block reads the norm's input. Pure.
#pragma once

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

// The operations of such touches read these outputs as well. Where no idle interval of
// at least three quarters of the length would remain, nothing is changed: the output cannot be
// recomputed beyond that touch (recompute_chain.h).
void KeepOutputsAtPresumedReads(IterationProfile* profile);

}  // namespace spillway::scheduler
