// What a call does to the memory that it names: filled in by the hook and by JobCalls, from Begin
// to End.
//
// Lives on the caller's stack, on one thread. Owns nothing but lists.
#pragma once

#include <cstddef>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/plan_walk.h"
#include "interposer/execute/range.h"
#include "interposer/execute/recompute_record.h"
#include "interposer/execute/slabs.h"
#include "interposer/execute/timeline.h"
#include "interposer/ledger/claims.h"
#include "interposer/ledger/contents.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/operation_shape.h"
#include "interposer/record/recorder.h"

namespace spillway::interposer {

// Device addresses, or words that may be such, found in a call's arguments.
using Addresses = base::InlineVector<CUdeviceptr, 64>;

// Words that may lead to memory of the host's that kernels reach (ledger/host_regions.h).
using HostWords = base::InlineVector<CUdeviceptr, 8>;

// What a call does to the memory it names; a launch may write. A call that names writes addresses
// down in a graph and enqueues nothing.
enum class Effect { kReads, kMayWrite, kLaunches, kNames };

// What the hook knows of a call beside the addresses that it names.
struct CallFacts {
  bool is_new = false;         // it runs a kernel that nobody has looked at (pointer_safety.h)
  bool is_documented = false;  // a library says what it does to memory, and all of it
  bool shows = false;          // the host may see what it does without a call
  const HostWords* host_words = nullptr;  // that it names; null: none
  const Claims* claims = nullptr;         // the roles of what is named; null: unknown
  const LaunchCall* launch = nullptr;     // it is this launch,
  LibraryCall* call =
      nullptr;      // the first that this call makes, and may be made again (recompute_record.h)
  Shape shape = 0;  // what the call is (operation_shape.h)
  const char* name = nullptr;  // for the trace
};

// The managed ranges that one call names, and those that it may reach through what they hold; lives
// on the caller's stack from Begin to End. But for the facts it is filled in by JobCalls.
struct TouchSet : CallFacts {
  TouchSet() = default;
  explicit TouchSet(const CallFacts& facts) : CallFacts(facts) {}

  base::InlineVector<Range*, 32> ranges;
  size_t named = 0;               // the first so many are named
  StreamState* stream = nullptr;  // null: the call is none of this job's
  Use use;                        // from End on: the call's place in its stream
  bool at_once = false;           // begun without the lock
  bool recorded = false;          // the call is written down in a graph; nothing runs
  bool names_freed = false;       // an address of ours at which nothing is allocated any more
  bool must_park = false;         // it may reach more than may be on the device
  bool awaits_scan = false;       // it is new, and the job is unproven until EndNew
  bool reads_host = false;        // memory of the host's was looked through,
  bool host_is_unsure = false;    // but not all of what lies there
  bool reaches = false;           // it may use memory by addresses that it does not name itself
  bool failed = false;            // the driver has refused it
  std::vector<HeldWord> held_on_host;   // addresses of ours that were found on the host
  std::vector<CUdeviceptr> host_bases;  // of the regions that were looked through
  base::InlineVector<Role, 32> roles;   // of the ranges, from the first on; beyond: kReadsAndWrites
  base::InlineVector<SlabBlock*, 8> blocks;        // small allocations that it names
  base::InlineVector<Tracked*, 4> reached_blocks;  // small allocations that it may reach so
  Sample sample;                                   // of how long it takes
  TraceMoment traced;                              // when it began
  bool is_told = false;                            // the plan has been told of it
  PlanStep step;                                   // what the plan asks for
};

}  // namespace spillway::interposer
