// Whether evicted memory may be left unmapped. How the job's kernels get addresses decides it.
//
// Pure: counts and findings in, decisions out.
//
// Note [Pointer safety]
// A kernel reaches memory by its parameters, which are scanned, or by addresses stored in memory.
// Addresses that copies put there are known (ledger/contents.h). Those that kernels put there are
// unknown until a full scan searches memory for them (execute/memory_scan.h). So a job starts as
// unproven. What it evicts is parked: its addresses are mapped onto the host copy, and mappings
// change only while the device is idle. In that state nothing can go wrong, however kernels get
// their addresses. A full scan that finds only addresses that copies explain proves the job. Then
// evicted memory loses its mapping, and moves while kernels run. A full scan that finds another
// address makes the job unsafe for good: its kernels build structures of their own.
//
// A full scan says nothing of memory freed before it, so it cannot vouch for kernels. A kernel that
// filled a short-lived table may fill another one tomorrow. So from the first eviction on, each
// kernel gets one post-launch scan. Directly after a launch of it, before the program can free
// anything, the memory that the launch reaches is searched. Until then the kernel is new, and a new
// kernel makes the job unproven before it runs. If nothing is found, the job is again what it was.
// A copy whose payload cannot be known makes the job unproven until the next full scan. One
// assumption remains: a kernel that wrote no address when it was scanned writes none later.
//
// Where memory cannot be parked, an unproven job evicts only after a full scan, and an unsafe job
// evicts nothing. A user who turns parking off declares the job safe. It counts as proven, and
// addresses in copies are still followed.
//
// Invariants
//  1. Unsafe is for ever. A job that parks by choice is never proven.
//  2. A proven job has passed a full scan. Every kernel launched since was scanned after its
//     launch, or that full scan covered its work.
//  3. Where memory can be parked, no job is proven from BeginNew to EndNew.
#pragma once

#include <cstdint>
#include <utility>

#include "interposer/config/park_choice.h"

namespace spillway::interposer {

enum class Finding : std::uint8_t {
  kNothing,  // copies explain every address, or the launch did nothing
  kAddress,
  kUnknown,  // the work was not complete in time, or could not be read
};

enum class UnsafeReason : std::uint8_t {
  kNone,
  kUnexplainedAddress,  // memory holds an address that no copy put there
  kTooManyAddresses,    // copies put more addresses into memory than are kept
  kDeviceHeap,          // kernels allocate memory of their own
  kArena,               // an allocation is larger than the budget: calls use guessed parts of it
  kReachesTooMuch,  // a launch can reach more than half of the budget through pointers in memory
};

// What follows, for the report. Later is worse.
enum class Standing : std::uint8_t {
  kAssumedSafe,  // the user has turned parking off
  kProven,       // evicted memory has no mapping
  kUnproven,     // nothing was evicted yet, or evicted memory is parked until a full scan
  kUnsafe,       // evicted memory is parked for good: by evidence, or by the user's choice
  kStays,        // nothing is evicted
};

const char* NameOf(Standing standing);
const char* NameOf(UnsafeReason unsafe_reason);  // the end of a sentence; empty for none

class PointerSafety {
 public:
  PointerSafety(ParkChoice choice, bool can_park) : choice_(choice), can_park_(can_park) {}

  bool MustPark() const { return MayPark() && !proven_; }
  // Host memory can be mapped where a kernel looks for device memory.
  bool MayPark() const { return can_park_ && choice_ != ParkChoice::kOff; }
  bool MustStay() const {
    if (can_park_ || choice_ == ParkChoice::kOff) return false;
    return choice_ == ParkChoice::kHost || unsafe_reason_ != UnsafeReason::kNone;
  }
  // Nothing is evicted while the device is busy, whatever that costs.
  bool MustWait() const { return choice_ != ParkChoice::kOff && !proven_; }
  // The driver has refused memory that can be mapped. A job with an arena keeps what is mapped, and
  // evicts no more.
  void CannotPark() { can_park_ = can_park_ && unsafe_reason_ == UnsafeReason::kArena; }
  bool IsProven() const { return proven_; }
  Standing standing() const;
  UnsafeReason unsafe_reason() const { return unsafe_reason_; }

  // A call with unknown addresses or uses follows: only a full scan can prove the job again. True
  // when the job was proven: evicted memory must be mapped before the call.
  bool AwaitNewWork() {
    is_new_ = true;
    returns_ = false;
    return std::exchange(proven_, false);
  }
  // A call uses memory without a note of that use: nothing may move until the device was idle.
  void RequireFullScan() { proven_ = returns_ = false; }
  // Memory may be left without a mapping, now or after a full scan.
  bool MayUnmap() const {
    return choice_ == ParkChoice::kOff ||
           (choice_ == ParkChoice::kAuto && unsafe_reason_ == UnsafeReason::kNone);
  }
  // Whether post-launch scans can still change anything.
  bool WantsScans() const {
    return choice_ == ParkChoice::kAuto && unsafe_reason_ == UnsafeReason::kNone;
  }
  // A kernel that was never scanned is about to be launched. Answers as AwaitNewWork.
  bool BeginNew() {
    ++new_launches_;
    returns_ = returns_ || proven_;
    is_new_ = is_new_ || !returns_;
    return std::exchange(proven_, false);
  }
  bool EndNew(Finding finding);
  // The first full scan may find that nothing may be evicted. Then memory granted beyond the budget
  // could not be used, so the scan comes before the grant.
  bool MustScanBeforeGranting() const {
    return choice_ == ParkChoice::kAuto && !can_park_ && !proven_ &&
           unsafe_reason_ == UnsafeReason::kNone;
  }
  bool WantsFullScan(std::uint64_t launches);
  void FullScanDone(std::uint64_t launches, bool found_address);
  // The arena was not made, and no call has been made since MarkUnsafe.
  void ForgetArena() {
    if (unsafe_reason_ == UnsafeReason::kArena) unsafe_reason_ = UnsafeReason::kNone;
  }
  void MarkUnsafe(UnsafeReason why) {
    if (unsafe_reason_ == UnsafeReason::kNone) unsafe_reason_ = why;
    proven_ = returns_ = false;
  }

 private:
  // Launches without a new kernel until a full scan is worth its price.
  static constexpr std::uint64_t kSettledLaunches = 64;

  const ParkChoice choice_;
  bool can_park_;
  UnsafeReason unsafe_reason_ = UnsafeReason::kNone;
  bool proven_ = false;
  bool returns_ = false;  // to being proven, once no new kernel awaits its scan
  std::uint32_t new_launches_ = 0;
  bool is_new_ = true;
  std::uint64_t new_at_launch_ = 0;        // launches when something new was last noted
  std::uint64_t full_scan_at_launch_ = 0;  // the next one of a proven job
};

}  // namespace spillway::interposer
