// The rules of ordering on which "the same bytes" rests, by name, so that a test build can leave one out and prove
// that the differential fuzzer notices (tests/fuzz). Every shipped build has them all.
#pragma once

namespace spillway::interposer::ordering_rules {

#if !defined(SPILLWAY_BREAK_RULE)
#define SPILLWAY_BREAK_RULE 0
#endif

// 1. Memory of a freed allocation is used anew only after the work that was enqueued before the free.
inline constexpr bool kReuseWaitsForFree = SPILLWAY_BREAK_RULE != 1;
// 2. Data leaves the device only after the work that was enqueued on it.
inline constexpr bool kOffloadFollowsUses = SPILLWAY_BREAK_RULE != 2;
// 3. Work on restored data starts only after the copy that brings it back.
inline constexpr bool kUseFollowsRestore = SPILLWAY_BREAK_RULE != 3;
// 4. A range is unmapped only after the copy of its data and every use of it are complete.
inline constexpr bool kUnmapWaitsForCompletion = SPILLWAY_BREAK_RULE != 4;
// 5. A call that may write outdates the host copy, complete or under way.
inline constexpr bool kTouchOutdatesHostCopy = SPILLWAY_BREAK_RULE != 5;
// 6. A host buffer is filled anew only after the copy that still reads it.
inline constexpr bool kHostBufferWaitsForCopy = SPILLWAY_BREAK_RULE != 6;

}  // namespace spillway::interposer::ordering_rules
