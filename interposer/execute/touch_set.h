// What a call does to the memory that it names, from Begin to End.
//
// On the caller's stack.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/state/plan_walk.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/state/recompute_record.h"
#include "interposer/execute/state/slabs.h"
#include "interposer/execute/state/timeline.h"
#include "interposer/ledger/claims.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/operation_shape.h"
#include "interposer/record/recorder.h"

namespace spillway::interposer {

// Device addresses, or words that may be such, found in a call's arguments.
using Addresses = base::InlineVector<CUdeviceptr, 64>;

// Words that may lead to host memory that kernels reach (ledger/host_regions.h).
using HostWords = base::InlineVector<CUdeviceptr, 8>;

// What a call does to the memory it names. kLaunches may write; kNames only builds a graph.
enum class Effect { kReads, kMayWrite, kLaunches, kNames };

struct CallFacts {
  bool is_new = false;         // it runs a kernel that was never scanned (pointer_safety.h)
  bool is_documented = false;  // a library documents all that it does to memory
  bool shows = false;          // the host may see its effects without a call
  const HostWords* host_words = nullptr;  // that it names; null: none
  const Claims* claims = nullptr;         // the roles of what is named; null: unknown
  const LaunchCall* launch = nullptr;
  LibraryCall* call =
      nullptr;  // set for the first launch of a call, which may be repeated (recompute_record.h)
  CallShape shape;  // what the call is (operation_shape.h)
  const char* name = nullptr;
  bool writes_variables = false;  // of modules, constants included, by copies and sets
};

// What experiments let expect of a launch without documents: claims that no bytes may depend on,
// and the call that a record of it needs. (Note [Learned effects] in state/launch_effects.h)
struct LearnedLaunch {
  Claims claims;
  LibraryCall call;
  bool is_proved = false;
  // Other exact kinds speak for this one. It may overwrite less than they do.
  bool is_of_others = false;
  bool reads_constants = false;  // perhaps
};

struct Experiment;

// The managed ranges that a call names, and those that it may reach through stored addresses.
// JobCalls fills in all but the facts.
struct TouchSet : CallFacts {
  TouchSet() = default;
  explicit TouchSet(const CallFacts& facts) : CallFacts(facts) {}

  base::InlineVector<Range*, 32> ranges;
  size_t named = 0;               // the first so many are named
  StreamState* stream = nullptr;  // null: of another job
  StreamTurn turn;
  Use use;
  bool at_once = false;      // begun without the lock
  bool recorded = false;     // the call only goes into a graph; nothing runs
  bool names_freed = false;  // an address of ours without an allocation
  bool must_park = false;    // parking must begin before the call
  bool awaits_scan = false;  // it is new, and the job is unproven until EndNew
  bool cuts_arenas = true;   // its addresses were not noted yet (arenas.h)
  bool reads_host = false;   // host memory was scanned,
  bool host_is_unsure = false;
  bool reaches = false;                // it may use memory that it does not name itself
  bool failed = false;                 // the driver has refused it
  std::vector<HeldWord> held_on_host;  // addresses of ours found on the host
  std::vector<HostRegions::Place> host_places;
  base::InlineVector<Role, 32> roles;  // of the ranges, from the first on; beyond: kReadsAndWrites
  base::InlineVector<SlabBlock*, 8> blocks;        // small allocations that it names
  base::InlineVector<Tracked*, 4> reached_blocks;  // small allocations that it may reach
  Sample sample;                                   // of how long it takes
  TraceMoment traced;                              // when it began
  std::optional<LearnedLaunch> learned;            // the claims are its own
  Experiment* experiment = nullptr;                // around this launch, until it has ended
  base::InlineVector<Tracked*, 4> presumed;        // that it presumably only reads
  std::optional<PlanStep> step;  // what the plan asks for; empty: the call was not reported to it
};

}  // namespace spillway::interposer
