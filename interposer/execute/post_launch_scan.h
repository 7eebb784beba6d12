// Post-launch scans: searches what a new kernel's first launch has put into memory for addresses.
// (Note [Pointer safety] in pointer_safety.h)
//
// The scan ends before the hook returns, so the program has not freed anything yet. It covers what
// the launch names, what that leads to, and the known device variables.
//
// Invariants
//  1. From BeginNew to EndNew the job is unproven, and evicted memory has a mapping.
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/memory_scan.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class PostLaunchScan {
 public:
  PostLaunchScan(JobState& state, Waits& waits, StoredAddresses& stored, MemoryScan& scan,
                 Parking& parking, Replays& replays)
      : state_(state),
        waits_(waits),
        stored_(stored),
        scan_(scan),
        parking_(parking),
        replays_(replays) {}

  // A call follows of which nothing is known: a kernel's first launch, or a copy whose payload may
  // still change. Returns when the call can do no harm.
  void AwaitNewWork() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool BeginNew() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // After End of a launch that awaits a scan; `ran` when the driver accepted it. True when the scan
  // found nothing: the kernel is no longer new.
  bool EndNew(const Addresses& addresses, const TouchSet& set, bool ran)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The job is no longer taken for safe: maps evicted memory and waits for restores under way.
  void BeginParking() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

 private:
  void BeginParkingIfDue() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Finding Scan(const Addresses& addresses, const TouchSet& set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool AwaitWork(Use use) SPILLWAY_EXCLUDES(kStateLock);
  bool AnyEvictedHoldsUnexplained(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  std::vector<MemoryScan::Part> PartsReached(const Addresses& addresses, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  StoredAddresses& stored_;
  MemoryScan& scan_;
  Parking& parking_;
  Replays& replays_;
  std::uint64_t scans_from_launch_ SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // the next scan, after a wait in vain
};

}  // namespace spillway::interposer
