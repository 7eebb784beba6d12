// Which allocations calls in progress name, published without a lock. These stay in place.
//
// Enter and Leave are called by LaunchPath on the calling thread. Names and OthersInProgress are
// called with the state lock held. Each thread that made a call owns a place here until it ends;
// then another thread takes the place over.
//
// Note [Fast path]
// The launch path takes no lock. A call first publishes the allocations that it names, then checks
// each one's fast path. A thread that moves or reuses an allocation first closes its fast path.
// Then it checks what all threads have published. Both sides write before they read, sequentially
// consistent, so at least one sees the other. A call that finds the fast path closed takes the
// locked path. A mover that finds the allocation named leaves it alone. (Hazard pointers: M.
// Michael, IEEE TPDS 15(6), 2004.) An open fast path means three things. The allocation is mapped,
// it has no host copy that a write would outdate, and its users need not wait.
//
// Invariants
//  1. A range whose fast path Enter found open is neither moved nor reused until Leave.
//  2. Enters of one thread nest: Leave undoes the last one.
// Never: waits, locks, or allocates, except a new thread's place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

struct Range;

namespace calls {

// A thread whose calls name more ranges than this takes the locked path.
inline constexpr std::uint32_t kMostNamed = 128;

// Publishes the ranges. False, with nothing published, when there are too many, or when a fast path
// is closed to that stream.
bool Enter(Range* const* ranges, size_t count, std::uint64_t stream_serial);
void Leave(size_t count);

// Whether a call in progress names the range. The caller has closed the range's fast path.
bool Names(const Range* range);
// Whether another thread has a call in progress. The caller's own does not count: on memory of
// another device, it ends only after the work at hand.
bool OthersInProgress();

}  // namespace calls
}  // namespace spillway::interposer
