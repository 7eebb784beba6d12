// Keeps outputs on the device where an input of theirs is touched by an operation that was only
// seen to read it (Operation::presumed_reads). If that operation writes after all, nothing is lost.
//
// Typically such a touch follows soon: a norm's output waits for the backward pass, and the
// residual addition behind the block reads the norm's input. So the output is dropped a little
// later. Pure.
#pragma once

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

// The operations of such touches read these outputs as well. Where an output would then have no
// idle interval of at least three quarters of its former length, nothing is changed: it cannot be
// recomputed beyond that touch (recompute_chain.h).
void KeepOutputsAtPresumedReads(IterationProfile* profile);

}  // namespace spillway::scheduler
