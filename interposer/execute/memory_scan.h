// Searches memory for addresses of the job's memory that no copy has put there.
//
// Called by Parking and PostLaunchScan on the program's threads, with the making lock held.
//
// A full scan runs while the device is idle and no call begins. Slabs, device variables and ranges
// up to kWholeInFullScanBytes are read in full. Of larger ranges the first page of every 64 KiB is
// read: a smaller contiguous structure there can be missed. Host copies are read on the host.
// Never: changes where memory is.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class MemoryScan {
 public:
  struct Part {
    CUdeviceptr base;
    size_t bytes;
    Range* range;  // null: part of a slab, or outside our memory
  };
  enum class Depth { kFull, kAfterLaunch };  // how much of large ranges is read

  MemoryScan(JobState& state, Waits& waits, StoredAddresses& stored)
      : state_(state), waits_(waits), stored_(stored) {}

  // Reports what it finds to PointerSafety.
  void ScanAll() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

  // On the device; in the host copy.
  bool HoldsUnexplained(const Part& part, const HostBuffer& staging, Depth depth)
      SPILLWAY_EXCLUDES(kStateLock);
  bool HostCopyHoldsUnexplained(Range& range, Depth depth) SPILLWAY_REQUIRES(kStateLock);
  // Pinned memory for one part at a time.
  bool TakeStaging(HostBuffer* out) SPILLWAY_REQUIRES(kStateLock);
  void LetGo(const std::vector<Part>& parts) SPILLWAY_REQUIRES(kStateLock);

 private:
  std::vector<Part> PartsOnDevice() SPILLWAY_REQUIRES(kStateLock);
  static size_t WholeBytes(Depth depth);
  bool AwaitReadBack(const CUDA_MEMCPY2D& copy) SPILLWAY_EXCLUDES(kStateLock);
  bool HostCopiesHoldUnexplained() SPILLWAY_EXCLUDES(kStateLock);
  bool AnyUnexplained(const std::byte* data, size_t bytes, CUdeviceptr at)
      SPILLWAY_REQUIRES(kStateLock);
  bool IsUnexplained(const HeldWord& held) SPILLWAY_REQUIRES(kStateLock);
  bool LeadsToAnother(CUdeviceptr word, const Allocation* holder) const;

  JobState& state_;
  Waits& waits_;
  StoredAddresses& stored_;
};

}  // namespace spillway::interposer
