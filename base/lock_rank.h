// The one order in which Spillway's locks may be taken: a thread may take a lock only of a higher rank than those it
// holds. Checked in builds with SPILLWAY_CHECK_LOCKS (debug and sanitizer builds).
//
// | rank       | protects                                   | not done while holding it                     |
// |------------|--------------------------------------------|-----------------------------------------------|
// | kMaking    | the right to make memory resident          | application calls (launches, copies)          |
// | kState     | ledger, residency, timeline, pools         | waiting for the device, application calls     |
// | kLoading   | opening the real driver                    | CUDA calls                                    |
#pragma once

namespace spillway::base {

enum class LockRank { kMaking = 1, kState = 2, kLoading = 3 };

}  // namespace spillway::base
