// What this process' memory did, for the report: plain numbers, guarded by the state lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// Bytes that may not move for one reason.
struct UnmovableBytes {
  std::size_t bytes = 0;
  std::size_t peak_bytes = 0;

  void Add(std::size_t more_bytes) {
    bytes += more_bytes;
    peak_bytes = std::max(peak_bytes, bytes);
  }
};

// Why a call of the program waited for memory.
enum class StallCause : std::uint8_t {
  kDemand,        // what it names was away, and no plan had asked for it
  kLatePrefetch,  // a plan had asked for it, and there was no memory yet
  kNoMemory,      // for memory that is new
  kPoolFull,      // for host memory, before something could leave
  kIdle,          // while the job parks: until the device was idle
  kShrink,        // the budget had become less
  kLinkShare,     // for its turn at the link, which other jobs use too
};
inline constexpr const char* kStallNames[] = {"demand", "late_prefetch", "no_memory", "pool_full",
                                              "idle",   "shrink",        "link_share"};

struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t copies = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t reused_ranges = 0;   // allocations served by a freed range as it was
  std::uint64_t passed_through = 0;  // allocations that the driver served, unmanaged
  std::uint64_t refused_allocations = 0;
  std::uint64_t over_budget_allocations =
      0;                        // of 1 MiB and more, granted while more was wanted than the budget
  std::uint64_t evictions = 0;  // ranges whose memory was taken away
  std::uint64_t cancelled_evictions = 0;        // touched before they had left
  std::uint64_t demand_fetches = 0;             // ranges brought back by the call that needed them
  std::uint64_t planned_iterations = 0;         // that began as their plan says
  std::uint64_t planned_iterations_missed = 0;  // after one with events that the plan does not know
  std::uint64_t planned_departures = 0;         // ranges that a plan sent away
  std::uint64_t prefetches = 0;         // ranges that a plan brought back before they were named
  std::uint64_t prefetched_bytes = 0;   // of restored_bytes, by them
  std::uint64_t prefetch_hits = 0;      // of these, used afterwards
  std::uint64_t prefetches_late = 0;    // asked for, and named before there was memory for them
  std::uint64_t prefetches_unused = 0;  // sent away or freed before they were used
  std::uint64_t offloaded_bytes = 0;    // device to host
  std::uint64_t planned_offloaded_bytes = 0;  // of offloaded_bytes, as a plan said
  std::uint64_t restored_bytes = 0;           // host to device
  std::uint64_t dropped_bytes =
      0;  // memory taken away without a copy: the host copy was still valid
  std::uint64_t verified_bytes =
      0;  // copied out once more: what calls show had left the host copy valid
  std::uint64_t recompute_drops =
      0;  // ranges whose bytes were let go, as they can be made again (recompute_record.h)
  std::uint64_t recompute_dropped_bytes = 0;  // theirs
  std::uint64_t recomputes = 0;               // launches made again for them
  std::uint64_t recomputed_bytes = 0;         // what these have made
  std::uint64_t demand_recomputes = 0;        // of these launches, those that no plan had asked for
  std::uint64_t held_inputs = 0;              // freed by the program, and still needed by a plan
  std::uint64_t proved_operations = 0;        // found to make the same bytes again
  std::uint64_t refuted_operations = 0;       // found not to
  std::uint64_t overwritten_bytes =
      0;  // brought back without a copy: the call that named them overwrites them
  std::uint64_t served_from_host = 0;  // reads answered from the host copy
  std::uint64_t parked_calls =
      0;  // that named more than there could be on the device, and used the rest where it is parked
  std::size_t parked_bytes =
      0;  // of live and freed ranges whose addresses are mapped onto host memory
  std::size_t parked_peak_bytes = 0;
  std::uint64_t idle_waits = 0;           // times that a mapping waited until the device was idle
  std::uint64_t idle_waits_given_up = 0;  // work on the device made no progress: nothing moved
  std::uint64_t post_launch_scans = 0;    // at what a new kernel has put into memory
  std::uint64_t full_scans = 0;           // times that memory was looked through for addresses
  std::uint64_t full_scan_bytes = 0;      // of device memory that was copied for that
  std::uint64_t stall_ns = 0;             // time in which calls waited for memory
  std::array<std::uint64_t, std::size(kStallNames)> stall_ns_by_cause{};
  void Stalled(StallCause cause, std::uint64_t time_ns) {
    stall_ns += time_ns;
    stall_ns_by_cause[static_cast<std::size_t>(cause)] += time_ns;
  }
  std::uint64_t budget_changes = 0;
  std::uint64_t over_budget_ns = 0;  // between a budget that became less and when it was met
  std::array<UnmovableBytes, std::size(kUnmovableNames)> unmovable;
  UnmovableBytes& UnmovableFor(Unmovable reason) {
    return unmovable[static_cast<std::size_t>(reason)];
  }
  std::size_t wanted_bytes = 0;  // live allocations, as they would occupy the device
  std::size_t wanted_peak_bytes = 0;
};

}  // namespace spillway::interposer
