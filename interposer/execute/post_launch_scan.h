// Looks: what a new kernel's launch has put into memory is looked through for addresses. See Note
// [Pointer safety] in pointer_safety.h.
//
// Called around calls on the program's threads. In the thread that has launched it, before the hook
// returns: the program has not freed any of it yet. What the launch names is looked through, what
// that leads to, and the device variables that are known.
//
// Invariants
//  1. From BeginNew to EndNew the job is unproven, and what is away has a mapping.
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

  // A call is about to be made of which nothing is known: a kernel seen for the first time, a copy
  // whose payload another may still change. Returns when it can do no harm.
  void AwaitNewWork() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // A new kernel is about to be launched. True when the launch must be looked at.
  bool BeginNew() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // After End of a launch that awaits a look; `ran` when the driver accepted it. True when its work
  // was looked at: the kernel is not new any more.
  bool EndNew(const Addresses& addresses, const TouchSet& set, bool ran)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // A job that was taken for harmless is not: what is away gets its mapping, what is on its way
  // back arrives.
  void BeginParking() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

 private:
  void BeginParkingIfDue() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Finding Scan(const Addresses& addresses, const TouchSet& set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool AwaitWork(Use use) SPILLWAY_EXCLUDES(kStateLock);
  bool AnyAwayHoldsUnexplained(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  std::vector<MemoryScan::Part> PartsReached(const Addresses& addresses, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  StoredAddresses& stored_;
  MemoryScan& scan_;
  Parking& parking_;
  Replays& replays_;
  std::uint64_t scans_from_launch_ SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // the next look, after one in vain
};

}  // namespace spillway::interposer
