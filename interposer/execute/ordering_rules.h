// The rules of ordering on which "the same bytes" rests, by name, so that a test library can leave
// one out and prove that the differential fuzzer notices (tests/fuzz). Every shipped build has them
// all.
//
// A rule is a line here and an `if` where it is kept. libspillway_breakable.so, built with
// SPILLWAY_BREAKABLE, lacks the rules that the environment variable SPILLWAY_BREAK_RULE names, one
// or several with commas between them, where one rule makes up for another; everywhere else the
// `if` costs nothing. The comment behind a rule gives the options of tests/fuzz/differential, and
// the environment, with which the fuzzer looks for its absence, after the name of the sanitizer
// (asan, tsan) that finds it where results may stay equal; `elsewhere` where another test does
// that.
#pragma once

#if defined(SPILLWAY_BREAKABLE)
#include <cstddef>
#include <cstdlib>
#include <cstring>
#endif

namespace spillway::interposer::ordering_rules {

#if defined(SPILLWAY_BREAKABLE)
inline bool IsKept(const char* rule) {
  const std::size_t length = strlen(rule);
  for (const char* broken = getenv("SPILLWAY_BREAK_RULE"); broken != nullptr;
       broken = strchr(broken, ',')) {
    broken += *broken == ',';
    const bool is_named =
        strncmp(broken, rule, length) == 0 && (broken[length] == ',' || broken[length] == 0);
    if (is_named) return false;
  }
  return true;
}
#define SPILLWAY_ORDERING_RULE(name) inline const bool name = IsKept(#name)
#else
#define SPILLWAY_ORDERING_RULE(name) inline constexpr bool name = true
#endif

// Memory of a freed allocation is used anew only after the work that was enqueued before the free.
SPILLWAY_ORDERING_RULE(kReuseWaitsForFree);  // SPILLWAY_PARK=off --features ''
// A free is as a wait for all work enqueued before it, wherever the program could tell.
SPILLWAY_ORDERING_RULE(kFreesKeepTheirPromise);  // SPILLWAY_PARK=off --features barriers
// What the host may look at without a call is complete when the free returns.
SPILLWAY_ORDERING_RULE(kFreesAwaitWhatShows);  // SPILLWAY_PARK=off --features barriers
// Work on another stream finds what work before the free has made.
SPILLWAY_ORDERING_RULE(kPromisesOrderStreams);  // SPILLWAY_PARK=off --features barriers
// Data leaves the device only after the work that was enqueued on it.
SPILLWAY_ORDERING_RULE(kOffloadFollowsUses);  // SPILLWAY_PARK=off --features ''
// Work on restored data starts only after the copy that brings it back.
SPILLWAY_ORDERING_RULE(kUseFollowsRestore);  // SPILLWAY_PARK=off --features ''
// A range is unmapped only after the copy of its data and every use of it are complete.
SPILLWAY_ORDERING_RULE(kUnmapWaitsForCompletion);  // SPILLWAY_PARK=off --features ''
// A call that may write outdates the host copy, complete or under way.
SPILLWAY_ORDERING_RULE(kTouchOutdatesHostCopy);  // SPILLWAY_PARK=off --features ''
// A host buffer is filled anew only after the copy that still reads it.
SPILLWAY_ORDERING_RULE(kHostBufferWaitsForCopy);  // SPILLWAY_PARK=off --features ''

// What a copy brings from the host is scanned for addresses.
SPILLWAY_ORDERING_RULE(kPayloadsAreScanned);  // SPILLWAY_PARK=off --features pointers
// A copy within the device brings along the addresses that its source holds.
SPILLWAY_ORDERING_RULE(kCopiesBringAddresses);  // SPILLWAY_PARK=off --features pointers
// What an unproven or unsafe job loses from the device keeps a mapping.
SPILLWAY_ORDERING_RULE(
    kEvictedMemoryIsParked);  // SPILLWAY_PARK=host --features structures,pointers
// The variables that modules declare are looked through, whether the program asks for them or not.
SPILLWAY_ORDERING_RULE(kVariablesAreFound);  // elsewhere: tests/integration/pointers
// Memory of the host's that a launch reaches is looked through for addresses.
SPILLWAY_ORDERING_RULE(kHostMemoryIsRead);  // SPILLWAY_PARK=off --features tables
// A host copy counts as good only while no kernel has run of which nobody says what it does.
SPILLWAY_ORDERING_RULE(kHostCopiesAreVerified);  // elsewhere: tests/integration/pointers
// A kernel that is seen for the first time makes its job unproven.
SPILLWAY_ORDERING_RULE(kNewKernelsAreNoted);  // elsewhere: tests/integration/pointers
// Memory that a call uses where it is parked keeps that mapping until the call is complete.
SPILLWAY_ORDERING_RULE(
    kUnparkWaitsForUses);  // SPILLWAY_BUDGET_SCHEDULE=narrow --features '' --iterations 6
// While evicted memory is parked, mappings change only when the device is idle.
SPILLWAY_ORDERING_RULE(kParkingWaitsForIdle);  // SPILLWAY_PARK=host --features structures,pointers

// What a call names at that moment does not leave because a plan says so.
SPILLWAY_ORDERING_RULE(
    kPlansSpareNamedMemory);  // SPILLWAY_PARK=off SPILLWAY_LEARN=wait SPILLWAY_STRATEGY=capuchin
                              // --iterations 30 --features ''
// Data that a plan sends away is copied, whatever the plan expects, unless the host has it.
SPILLWAY_ORDERING_RULE(
    kDropsAreChecked);  // SPILLWAY_PARK=off SPILLWAY_LEARN=wait SPILLWAY_STRATEGY=capuchin
                        // --iterations 30 --features ''

// Memory freed in a stream's order is used anew only after what that stream did before.
SPILLWAY_ORDERING_RULE(kStreamFreeFollowsItsStream);  // SPILLWAY_PARK=off --features ''
// Memory under a texture object stays on the device.
SPILLWAY_ORDERING_RULE(kTexturesHold);  // SPILLWAY_PARK=off --features textures
// A tensor map names the memory that it was encoded from.
SPILLWAY_ORDERING_RULE(kTensorMapsAreNoted);  // SPILLWAY_PARK=off --features tensor_maps

// What an instantiated graph names is resident for a launch of it.
SPILLWAY_ORDERING_RULE(
    kGraphsNameTheirMemory);  // --features graphs --iterations 8 SPILLWAY_PARK=off
// A graph that is updated names what it was updated with.
SPILLWAY_ORDERING_RULE(
    kUpdatesNameTheirMemory);  // --features graphs --iterations 8 SPILLWAY_PARK=off
// What one node of a graph may write the graph may write, whatever its copies and sets do there.
SPILLWAY_ORDERING_RULE(kGraphsUniteTheirNodes);  // --features graphs SPILLWAY_PARK=off
                                                 // SPILLWAY_BREAK_RULE=kHostCopiesAreVerified

// RecomputeRecords (recompute_record.h).
// What can only be made from memory that a call may write is made first.
SPILLWAY_ORDERING_RULE(kWritesAwaitReplays);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                              // --contexts 1 --features recompute
// So with memory that shares a slab with others.
SPILLWAY_ORDERING_RULE(kSmallWritesAwaitReplays);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                                   // --contexts 1 --features recompute
// Calls that name what records read or make take the lock.
SPILLWAY_ORDERING_RULE(kRecordsCloseFastPaths);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                                 // --contexts 1 --features recompute
// A launch is made again only behind the copies and launches that bring its inputs.
SPILLWAY_ORDERING_RULE(kReplaysFollowInputs);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                               // --contexts 1 --features recompute
// What a launch that is made again clobbers goes to scratch memory.
SPILLWAY_ORDERING_RULE(kReplaysWriteElsewhere);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                                 // --contexts 1 --features recompute
// What it reads is written anew only behind it.
SPILLWAY_ORDERING_RULE(kWritesFollowReplays);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                               // --contexts 1 --features recompute
// What it makes is used only behind it.
SPILLWAY_ORDERING_RULE(kUsesFollowReplays);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                             // --contexts 1 --features recompute
// Only what a launch overwrites whole is made again.
SPILLWAY_ORDERING_RULE(kRecordsOverwriteAll);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager
                                               // --contexts 1 --features recompute
// Only what came out the same when it was tried is.
SPILLWAY_ORDERING_RULE(
    kProofsDecide);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// What came out differently then is as it was first.
SPILLWAY_ORDERING_RULE(kRefutedIsPutBack);  // SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts
                                            // 1 --features recompute

// What a plan makes something of again stays beyond its free.
SPILLWAY_ORDERING_RULE(kHeldInputsStay);  // SPILLWAY_PARK=off SPILLWAY_LEARN=wait --iterations 12
                                          // --contexts 1 --hosts 1 --features gradients

// A call that takes no lock writes down what it names before it looks whether that may be used.
SPILLWAY_ORDERING_RULE(
    kNamesComeBeforeFastPath);  // SPILLWAY_PARK=off --features '' --hosts 3 --schedule 1
// What a call may hold without a lock is used again, never given back.
SPILLWAY_ORDERING_RULE(kObjectsAreKept);  // asan
// What only the lock guards is read with the lock held.
SPILLWAY_ORDERING_RULE(kAnswersTakeTheLock);  // tsan --hosts 4

}  // namespace spillway::interposer::ordering_rules
