// The ordering rules on which "the same bytes" rests, by name. A test library can leave one out, to
// prove that the differential fuzzer notices (tests/fuzz). Every shipped build has them all.
//
// A rule is a line here and an `if` where it is kept. libspillway_breakable.so, built with
// SPILLWAY_BREAKABLE, lacks the rules that SPILLWAY_BREAK_RULE names, separated by commas. Several
// are needed where one rule makes up for another. In other builds the `if` costs nothing. The
// comment behind a rule gives the options of tests/fuzz/differential, and the environment, with
// which the fuzzer finds the rule missing. A sanitizer (asan, tsan) comes first where results may
// stay equal; `elsewhere` names another test that finds it.
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

// One rule a line, with its options: tests/fuzz/run_differential.py reads them.
// clang-format off

// Freed memory is reused only after the work that was enqueued before the free.
SPILLWAY_ORDERING_RULE(kReuseWaitsForFree);  // --first 22 SPILLWAY_PARK=off --features ''
// A free acts as a wait for all work enqueued before it, wherever the program could tell.
SPILLWAY_ORDERING_RULE(kFreesKeepTheirPromise);  // --first 1 SPILLWAY_PARK=off --features barriers
// Work whose effects the host may see without a call is complete when the free returns.
SPILLWAY_ORDERING_RULE(kFreesAwaitWhatShows);  // --first 2 SPILLWAY_PARK=off --features barriers
// Host memory whose addresses kernels received before the first allocation counts as visible.
SPILLWAY_ORDERING_RULE(kEarlyAddressesAreNoted);  // --first 1 SPILLWAY_PARK=off --features early --hosts 1 --contexts 1
// Work on another stream finds the results of work before the free.
SPILLWAY_ORDERING_RULE(kPromisesOrderStreams);  // --first 41..45 SPILLWAY_PARK=off --features barriers
// A range is offloaded only after the work that was enqueued on it.
SPILLWAY_ORDERING_RULE(kOffloadFollowsUses);  // --first 1 SPILLWAY_PARK=off --features ''
// Work on a restored range starts only after the copy that restores it.
SPILLWAY_ORDERING_RULE(kUseFollowsRestore);  // --first 1 SPILLWAY_PARK=off --features ''
// A range is unmapped only after its copy and every use of it are complete.
SPILLWAY_ORDERING_RULE(kUnmapWaitsForCompletion);  // --first 1 SPILLWAY_PARK=off --features ''
// A call that may write outdates the host copy, whether complete or under way.
SPILLWAY_ORDERING_RULE(kTouchOutdatesHostCopy);  // --first 85 SPILLWAY_PARK=off --features ''
// A host buffer is overwritten only after the copy that still reads it.
SPILLWAY_ORDERING_RULE(kHostBufferWaitsForCopy);  // --first 79 SPILLWAY_PARK=off --features ''

// The payload of a copy from the host is scanned for addresses.
SPILLWAY_ORDERING_RULE(kPayloadsAreScanned);  // --first 4 SPILLWAY_PARK=off --features pointers
// A copy within the device carries over the addresses that its source holds.
SPILLWAY_ORDERING_RULE(kCopiesBringAddresses);  // --first 9 SPILLWAY_PARK=off --features pointers
// Memory evicted from an unproven or unsafe job keeps a mapping.
SPILLWAY_ORDERING_RULE(kEvictedMemoryIsParked);  // --first 1..5 SPILLWAY_PARK=host --features structures,pointers
// Variables that modules declare are scanned, even if the program never asks for them.
SPILLWAY_ORDERING_RULE(kVariablesAreFound);  // elsewhere: tests/integration/pointers
// Host memory that a launch reaches is scanned for addresses.
SPILLWAY_ORDERING_RULE(kHostMemoryIsRead);  // --first 2 SPILLWAY_PARK=off --features tables
// A launch that names an address beside an allocation may use the allocation.
SPILLWAY_ORDERING_RULE(kBesideIsNamed);  // --first 1 SPILLWAY_PARK=off --features beside
// A launch that finds such an address in memory may use the allocation, too.
SPILLWAY_ORDERING_RULE(kBesideIsFollowed);  // --first 1 SPILLWAY_PARK=off --features beside,hidden
// A kernel that writes such an address builds pointer structures.
SPILLWAY_ORDERING_RULE(kStraysAreFound);  // --first 26..30 --features strays --iterations 4
// Addresses in packed structs are found.
SPILLWAY_ORDERING_RULE(kPackedWordsAreFound);  // --first 9 SPILLWAY_PARK=off --features beside
// Addresses that come as two parameters are found.
SPILLWAY_ORDERING_RULE(kHalvesAreJoined);  // --first 1 SPILLWAY_PARK=off --features beside
// A host copy counts as good only while no undocumented kernel has run since.
SPILLWAY_ORDERING_RULE(kHostCopiesAreVerified);  // elsewhere: tests/integration/pointers
// A kernel's first launch makes its job unproven.
SPILLWAY_ORDERING_RULE(kNewKernelsAreNoted);  // elsewhere: tests/integration/pointers
// Memory that a call uses parked keeps that mapping until the call is complete.
SPILLWAY_ORDERING_RULE(kUnparkWaitsForUses);  // --first 3 SPILLWAY_BUDGET_SCHEDULE=narrow --features '' --iterations 6
// While evicted memory is parked, mappings change only while the device is idle.
SPILLWAY_ORDERING_RULE(kParkingWaitsForIdle);  // --first 36 SPILLWAY_PARK=host --features structures,pointers

// A plan does not evict what a call in progress names.
SPILLWAY_ORDERING_RULE(kPlansSpareNamedMemory);  // --first 2 SPILLWAY_PARK=off SPILLWAY_LEARN=wait SPILLWAY_STRATEGY=capuchin --iterations 30 --features ''
// Data that was only read, as far as experiments showed, is compared with its host copy.
SPILLWAY_ORDERING_RULE(kContentIsCompared);  // elsewhere: tests/unit/interposer/known_by_content_test.cpp
// A launch is repeated only if it changed nothing but what it fills.
SPILLWAY_ORDERING_RULE(kRepetitionsChangeNothing);  // elsewhere: tests/unit/interposer/effect_learning_test.cpp
// A record is used only if its memory is as it was before launches that presumably read it.
SPILLWAY_ORDERING_RULE(kPresumedReadsAreCompared);  // elsewhere: tests/unit/interposer/presumed_reads_test.cpp
// Data that a plan evicts is copied unless the host has it, whatever the plan expects.
SPILLWAY_ORDERING_RULE(kDropsAreChecked);  // --first 9 SPILLWAY_PARK=off SPILLWAY_LEARN=wait SPILLWAY_STRATEGY=capuchin --iterations 30 --features ''

// Memory freed in stream order is reused only after that stream's earlier work.
SPILLWAY_ORDERING_RULE(kStreamFreeFollowsItsStream);  // --first 6..10 SPILLWAY_PARK=off --features ''
// Memory under a texture object stays on the device.
SPILLWAY_ORDERING_RULE(kTexturesHold);  // --first 3 SPILLWAY_PARK=off --features textures
// A tensor map names the memory that it was encoded from.
SPILLWAY_ORDERING_RULE(kTensorMapsAreNoted);  // --first 1 SPILLWAY_PARK=off --features tensor_maps

// Memory that an instantiated graph names is resident for its launches.
SPILLWAY_ORDERING_RULE(kGraphsNameTheirMemory);  // --first 1 --features graphs --iterations 8 SPILLWAY_PARK=off
// An updated graph names what it was updated with.
SPILLWAY_ORDERING_RULE(kUpdatesNameTheirMemory);  // --first 11 --features graphs --iterations 8 SPILLWAY_PARK=off
// A graph may write what one of its nodes may write, whatever its copies and sets do there.
SPILLWAY_ORDERING_RULE(kGraphsUniteTheirNodes);  // --first 11 --features graphs SPILLWAY_PARK=off SPILLWAY_BREAK_RULE=kHostCopiesAreVerified
// Memory that a disabled node would overwrite keeps its bytes.
SPILLWAY_ORDERING_RULE(kSwitchesAreNoted);  // --first 9 SPILLWAY_PARK=off --features switches
// Disabled nodes stay disabled when their graph is updated.
SPILLWAY_ORDERING_RULE(kUpdatesKeepSwitches);  // --first 16 SPILLWAY_PARK=off --features switches

// Recompute records and their replays (recompute_record.h).
// Ranges that can only be recomputed from memory that a call may write are recomputed first.
SPILLWAY_ORDERING_RULE(kWritesAwaitReplays);  // --first 1 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// The same for small allocations, which share slabs.
SPILLWAY_ORDERING_RULE(kSmallWritesAwaitReplays);  // --first 6..10 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// Calls that name inputs or outputs of records take the lock.
SPILLWAY_ORDERING_RULE(kRecordsCloseFastPaths);  // --first 1..5 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// A replay runs behind the copies and launches that bring its inputs.
SPILLWAY_ORDERING_RULE(kReplaysFollowInputs);  // --first 48 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// A replay clobbers scratch memory only.
SPILLWAY_ORDERING_RULE(kReplaysWriteElsewhere);  // --first 1 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// Writes to a replay's inputs come behind it.
SPILLWAY_ORDERING_RULE(kWritesFollowReplays);  // --first 1..5 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// Uses of a replay's output come behind it.
SPILLWAY_ORDERING_RULE(kUsesFollowReplays);  // --first 1..5 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// Only ranges that a launch overwrites whole are recomputed.
SPILLWAY_ORDERING_RULE(kRecordsOverwriteAll);  // --first 3 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// Only operations that made the same bytes in their proof are replayed.
SPILLWAY_ORDERING_RULE(kProofsDecide);  // --first 5 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute
// An output that differed in its proof gets its first bytes back.
SPILLWAY_ORDERING_RULE(kRefutedIsPutBack);  // --first 5 SPILLWAY_PARK=off SPILLWAY_RECOMPUTE=eager --contexts 1 --features recompute

// Memory that a plan recomputes from stays beyond its free.
SPILLWAY_ORDERING_RULE(kHeldInputsStay);  // --first 17 SPILLWAY_PARK=off SPILLWAY_LEARN=wait --iterations 12 --contexts 1 --hosts 1 --features gradients

// A use for anything else makes an idle workspace an ordinary range.
SPILLWAY_ORDERING_RULE(kOtherUsesEndWorkspaces);  // --first 1..5 SPILLWAY_PARK=off --contexts 1 --features workspaces
// A workspace keeps its bytes until the library's call has ended.
SPILLWAY_ORDERING_RULE(kWorkspacesServeWholeCalls);  // --first 1 SPILLWAY_PARK=off --contexts 1 --features workspaces

// The program's own mappings stay where others are next to them: a use of one may be of all.
SPILLWAY_ORDERING_RULE(kRunsStay);  // --first 10 SPILLWAY_PARK=off --contexts 1 --features mappings
// While they may leave, a call that names one brings back all.
SPILLWAY_ORDERING_RULE(kRunsReturnWhole);  // --first 1 SPILLWAY_PARK=off SPILLWAY_BUDGET_SCHEDULE=naps --contexts 1 --hosts 1 --features mappings
// Before they leave, all work that was enqueued until then is complete.
SPILLWAY_ORDERING_RULE(kReleasesAwaitAllWork);  // --first 9 SPILLWAY_PARK=off SPILLWAY_BUDGET_SCHEDULE=naps --contexts 1 --hosts 1 --features mappings
// Once they are back, uses of one wait for the restores of all.
SPILLWAY_ORDERING_RULE(kRunsAwaitAllRestores);  // elsewhere: tests/integration/sharing/own_runs_test.cpp
// From then on no host copy counts: a call may write what it does not name.
SPILLWAY_ORDERING_RULE(kHeldRunsKeepNoCopies);  // elsewhere: tests/integration/sharing/own_runs_test.cpp

// A call without a lock publishes what it names before it checks the fast paths.
SPILLWAY_ORDERING_RULE(kNamesComeBeforeFastPath);  // --first 1 SPILLWAY_PARK=off --features '' --hosts 3 --schedule 1
// Of the calls on one stream, only one at a time notes its uses without read-modify-writes.
SPILLWAY_ORDERING_RULE(kTurnsExclude);  // elsewhere: tests/unit/interposer/stream_turn_test.cpp
// Objects that a call may hold without a lock are reused, never freed.
SPILLWAY_ORDERING_RULE(kObjectsAreKept);  // asan
// What only the lock guards is read with the lock held.
SPILLWAY_ORDERING_RULE(kAnswersTakeTheLock);  // tsan --hosts 4

// clang-format on

}  // namespace spillway::interposer::ordering_rules
