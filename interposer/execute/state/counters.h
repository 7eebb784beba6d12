// What this process's memory did, for the report. Guarded by the state lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

struct UnmovableBytes {
  std::size_t bytes = 0;
  std::size_t peak_bytes = 0;

  void Add(std::size_t more_bytes) {
    bytes += more_bytes;
    peak_bytes = std::max(peak_bytes, bytes);
  }
};

enum class StallCause : std::uint8_t {
  kDemand,        // it names evicted memory that no plan had asked for
  kLatePrefetch,  // a plan had asked for it, but there was no memory yet
  kNoMemory,      // new memory was needed
  kPoolFull,      // host memory was needed before anything could be evicted
  kIdle,          // while the job parks: the device had to become idle
  kShrink,        // the budget had shrunk
  kLinkShare,     // it was not the job's turn at the link that jobs share
};
inline constexpr const char* kStallNames[] = {"demand", "late_prefetch", "no_memory", "pool_full",
                                              "idle",   "shrink",        "link_share"};

struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t copies = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t arenas = 0;  // allocations larger than the budget, which move in parts
  std::uint64_t arena_bytes = 0;
  std::uint64_t reused_ranges = 0;   // served by a freed range of the same size
  std::uint64_t passed_through = 0;  // served by the driver, unmanaged
  std::uint64_t refused_allocations = 0;
  std::size_t refused_unmovable_bytes = 0;  // the largest refused that could not have moved
  std::uint64_t over_budget_allocations =
      0;  // of 1 MiB and more, while the job wanted more than its budget
  std::uint64_t evictions = 0;
  std::uint64_t cancelled_evictions = 0;        // touched before their memory was gone
  std::uint64_t demand_fetches = 0;             // ranges restored by the call that needed them
  std::uint64_t planned_iterations = 0;         // began as their plan says
  std::uint64_t planned_iterations_missed = 0;  // of them, began after events unknown to the plan
  std::uint64_t planned_departures = 0;         // ranges that a plan evicted or dropped
  std::uint64_t prefetches = 0;  // ranges that a plan restored before they were named
  std::uint64_t prefetched_bytes = 0;
  std::uint64_t prefetch_hits = 0;      // prefetches that were used
  std::uint64_t prefetches_late = 0;    // named before there was memory for them
  std::uint64_t prefetches_unused = 0;  // evicted or freed before use
  std::uint64_t offloaded_bytes = 0;
  std::uint64_t planned_offloaded_bytes = 0;
  std::uint64_t restored_bytes = 0;
  std::uint64_t dropped_bytes = 0;  // evicted without a copy: the host copy was still valid
  std::uint64_t workspace_dropped_bytes = 0;   // likewise: bytes of idle workspaces mean nothing
  std::uint64_t clean_by_content_bytes = 0;    // of dropped_bytes, by a fingerprint
  std::uint64_t changed_by_content_bytes = 0;  // a fingerprint showed that it was not
  std::uint64_t verified_bytes = 0;   // copied out again, though no call had outdated the host copy
  std::uint64_t recompute_drops = 0;  // ranges
  std::uint64_t recompute_dropped_bytes = 0;
  std::uint64_t recomputes = 0;  // launches repeated for them
  std::uint64_t recomputed_bytes = 0;
  std::uint64_t demand_recomputes = 0;      // that no plan had asked for
  std::uint64_t checked_recomputes = 0;     // compared with a fingerprint
  std::uint64_t insured_recomputes = 0;     // of these, those that a host copy replaced
  std::uint64_t mismatched_recomputes = 0;  // of these, those that made other bytes
  std::uint64_t fingerprinted_bytes = 0;
  std::uint64_t fingerprint_ns = 0;  // of the device, an estimate
  std::uint64_t experiments = 0;
  std::uint64_t held_inputs = 0;  // freed by the program while a plan still needed them
  std::uint64_t proved_operations = 0;
  std::uint64_t refuted_operations = 0;
  std::uint64_t overwritten_bytes = 0;  // made resident without a copy: a call overwrites them
  std::uint64_t served_from_host = 0;
  std::uint64_t parked_calls = 0;  // used some of their ranges parked, because not all fitted
  std::size_t parked_bytes = 0;    // live and freed ranges mapped onto host memory
  std::size_t parked_peak_bytes = 0;
  std::uint64_t idle_waits = 0;           // mapping changes that waited for an idle device
  std::uint64_t idle_waits_given_up = 0;  // the device made no progress: nothing moved
  std::uint64_t post_launch_scans = 0;
  std::uint64_t full_scans = 0;
  std::uint64_t full_scan_bytes = 0;  // device memory copied for scans of both kinds
  std::uint64_t stall_ns = 0;         // time in which calls waited for memory
  std::array<std::uint64_t, std::size(kStallNames)> stall_ns_by_cause{};
  std::uint64_t stall_of_ns = 0;  // from the end of the first wait to the end of the last
  void Stalled(StallCause cause, std::uint64_t time_ns) {
    stall_ns += time_ns;
    stall_ns_by_cause[static_cast<std::size_t>(cause)] += time_ns;
  }
  // Of the job's file (spilling.h).
  std::uint64_t spill_written_bytes = 0;
  std::uint64_t spill_read_bytes = 0;
  std::uint64_t spill_failures = 0;               // blocks not taken, ranges not given back
  std::uint64_t spare_copies_released_bytes = 0;  // host copies of resident memory, without need
  std::uint64_t budget_changes = 0;
  std::uint64_t over_budget_ns = 0;  // until a smaller budget was met
  std::array<UnmovableBytes, std::size(kUnmovableNames)> unmovable;
  void NoteRefusedUnmovable(std::size_t bytes) {
    refused_unmovable_bytes = std::max(refused_unmovable_bytes, bytes);
  }
  UnmovableBytes& UnmovableFor(Unmovable reason) {
    return unmovable[static_cast<std::size_t>(reason)];
  }
  // As soon as the job computes.
  std::size_t UnmovableBytesSoon() const {
    std::size_t bytes = released_bytes;
    for (const UnmovableBytes& reason : unmovable) bytes += reason.bytes;
    return bytes;
  }
  std::size_t UnmovableAllocatedBytes() const {
    return UnmovableBytesSoon() - unmovable[static_cast<std::size_t>(Unmovable::kSmall)].bytes;
  }
  // Of runs of the program's own mappings (runs.h): those that stay, which are unmovable; those
  // that may leave now. The latter will be unmovable when the job computes again.
  std::size_t held_run_bytes = 0, released_bytes = 0;
  std::size_t kept_run_bytes = 0;  // of them, what the last release had to keep
  std::size_t put_off_bytes = 0;   // of wanted_bytes, freed by the program, and needed to recompute
  std::size_t wanted_bytes = 0;    // what the job would hold with nothing evicted
  std::size_t wanted_peak_bytes = 0;
};

}  // namespace spillway::interposer
