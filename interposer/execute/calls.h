// Which allocations the calls in progress name, told without a lock: what a call names stays where
// it is.
//
// Enter and Leave are called by LaunchPath on the calling thread, Names and OthersInProgress with
// the state lock held. Each thread that made a call owns a place here until it ends; the next
// thread takes it over.
//
// Note [Fast path]
// The launch path takes no lock. It writes down what the call names, then looks at each
// allocation's fast path; whoever wants to move or reuse an allocation closes the fast path, then
// looks at what all threads have written down. Both write before they read, sequentially
// consistent, so that at least one of them sees the other: either the call finds the fast path
// closed and takes the slow way under the lock, or the mover finds the allocation named and leaves
// it alone. (Hazard pointers: M. Michael, IEEE TPDS 15(6), 2004.) An open fast path means: mapped,
// no host copy that a write would outdate, and nothing that the calls it is open for must wait for.
//
// Invariants
//  1. From a successful Enter to its Leave no fast path that it found open leads to moved or reused
//  memory.
//  2. Enters of one thread nest: Leave undoes the last one.
// Never: waits, locks, or makes memory for anything but a new thread's place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

struct Range;

namespace calls {

// More ranges than this in the calls of one thread take the slow way.
inline constexpr std::uint32_t kMostNamed = 128;

// Writes down the ranges; false, with nothing written down, when a fast path is closed to the
// stream of that serial number.
bool Enter(Range* const* ranges, size_t count, std::uint64_t stream_serial);
void Leave(size_t count);

// Whether a call in progress names the range. Close its fast path first.
bool Names(const Range* range);
// Whether another thread's call is: the caller's own, of memory on another device, ends after what
// is asked for.
bool OthersInProgress();

}  // namespace calls
}  // namespace spillway::interposer
