// Whether evicted memory may be left without a mapping: what is known of how this job's kernels
// come by their addresses.
//
// Called by the classes behind JobMemory with the state lock held. Pure: counts and findings in,
// decisions out.
//
// Note [Pointer safety]
// A kernel reaches memory by its parameters, which are scanned, or by addresses that lie in memory.
// Those that copies put there are known (ledger/contents.h); those that kernels put there are not,
// until the memory is looked through (a full scan, execute/memory_scan.h). So a job is unproven at
// first: what is evicted is parked, that is its addresses are mapped onto the host copy, and
// mappings change only while the device is idle. In that state nothing can go wrong, however
// kernels come by their addresses. A full scan that finds only addresses that copies explain proves
// the job: then evicted memory loses its mapping and moves while kernels run. A full scan that
// finds another one makes it unsafe for good: its kernels build structures of their own.
//
// A full scan says nothing of what was freed before it, so it cannot speak for kernels: one that
// filled a table that lived for a moment may fill another one tomorrow. So from the first eviction
// on each kernel is looked at, once: after a launch of it the memory that the launch reaches is
// looked through at once, before the program can free any of it. Until then the kernel is new, and
// a new kernel makes the job unproven before it runs. If nothing is found the job is again what it
// was. A copy whose payload cannot be known makes it unproven until the next full scan. What
// remains is trusted: that a kernel which wrote no address when it was looked at writes none later.
//
// Where memory cannot be parked, an unproven job evicts only after a full scan, and an unsafe one
// not at all. A user who turns parking off says that the job is safe: it counts as proven, and what
// copies put into memory is still followed.
//
// Invariants
//  1. Unsafe is for ever. A job that parks by choice is never proven.
//  2. A proven job has passed a full scan, and all kernels that it has launched since were looked
//  at, or that full scan found
//     what they did.
//  3. Where memory can be parked no job is proven from BeginNew to EndNew.
#pragma once

#include <cstdint>
#include <utility>

namespace spillway::interposer {

// What the user chose (SPILLWAY_PARK).
enum class ParkChoice : std::uint8_t { kAuto, kHost, kOff };

// What a look at a new kernel's work has shown.
enum class Finding : std::uint8_t {
  kNothing,  // no address that copies do not explain, or the launch did nothing
  kAddress,
  kUnknown,  // the work was not complete in time, or could not be read
};

enum class UnsafeReason : std::uint8_t {
  kNone,
  kUnexplainedAddress,  // memory holds an address that no copy put there
  kTooManyAddresses,    // copies put more addresses into memory than are kept
  kDeviceHeap,          // kernels allocate memory of their own
  kReachesTooMuch,  // a launch can reach more than half of the budget through pointers in memory
};

// What follows from all that, for the report; the worse the later.
enum class Standing : std::uint8_t {
  kAssumedSafe,  // the user has turned parking off
  kProven,       // evicted memory has no mapping
  kUnproven,     // nothing was evicted yet, or evicted memory is parked until a full scan
  kUnsafe,       // evicted memory is parked for good: there is evidence, or the user chose that
  kStays,        // nothing is evicted
};

const char* NameOf(Standing standing);
const char* NameOf(UnsafeReason unsafe_reason);  // a sentence's end; empty for none

class PointerSafety {
 public:
  PointerSafety(ParkChoice choice, bool can_park) : choice_(choice), can_park_(can_park) {}

  // What is evicted stays mapped, and mappings change only while the device is idle.
  bool MustPark() const { return MayPark() && !proven_; }
  // Memory on the host can take the place of memory on the device where a kernel looks for it.
  bool MayPark() const { return can_park_ && choice_ != ParkChoice::kOff; }
  // Nothing that is on the device may leave.
  bool MustStay() const {
    if (can_park_ || choice_ == ParkChoice::kOff) return false;
    return choice_ == ParkChoice::kHost || unsafe_reason_ != UnsafeReason::kNone;
  }
  // Nothing leaves while the device is busy, whatever it costs.
  bool MustWait() const { return choice_ != ParkChoice::kOff && !proven_; }
  // The driver has refused memory that can be mapped.
  void CannotPark() { can_park_ = false; }
  bool IsProven() const { return proven_; }
  Standing standing() const;
  UnsafeReason unsafe_reason() const { return unsafe_reason_; }

  // A call is about to be made of which it is not known what addresses it brings, or what it uses:
  // that takes a full scan. True when the job was proven until now: then what is away must be
  // mapped before the call is made.
  bool AwaitNewWork() {
    is_new_ = true;
    returns_ = false;
    return std::exchange(proven_, false);
  }
  // A call uses memory of which it is not noted that it does: until the device was idle nothing may
  // move.
  void RequireFullScan() { proven_ = returns_ = false; }
  // Memory may be left without a mapping, now or after a full scan.
  bool MayUnmap() const {
    return choice_ == ParkChoice::kOff ||
           (choice_ == ParkChoice::kAuto && unsafe_reason_ == UnsafeReason::kNone);
  }
  // Whether looks can still change anything.
  bool WantsScans() const {
    return choice_ == ParkChoice::kAuto && unsafe_reason_ == UnsafeReason::kNone;
  }
  // A kernel that nobody has looked at is about to be launched; as above.
  bool BeginNew() {
    ++new_launches_;
    returns_ = returns_ || proven_;
    is_new_ = is_new_ || !returns_;
    return std::exchange(proven_, false);
  }
  // The launch was made and looked at. True when the job is proven again.
  bool EndNew(Finding finding);
  // What is granted beyond the budget could not be used if the first full scan says that nothing
  // may leave: it comes before.
  bool MustAskBeforeGranting() const {
    return choice_ == ParkChoice::kAuto && !can_park_ && !proven_ &&
           unsafe_reason_ == UnsafeReason::kNone;
  }
  // Whether to look through memory now that the device is idle and something is about to be
  // evicted.
  bool WantsFullScan(std::uint64_t launches);
  // The full scan is over; it found an address that nothing explains, or none.
  void FullScanDone(std::uint64_t launches, bool found_address);
  void MarkUnsafe(UnsafeReason why) {
    if (unsafe_reason_ == UnsafeReason::kNone) unsafe_reason_ = why;
    proven_ = returns_ = false;
  }

 private:
  // So many launches without a new kernel before a full scan is worth its price.
  static constexpr std::uint64_t kSettledLaunches = 64;

  const ParkChoice choice_;
  bool can_park_;
  UnsafeReason unsafe_reason_ = UnsafeReason::kNone;
  bool proven_ = false;
  bool returns_ = false;            // to being proven, when no new kernel is left to look at
  std::uint32_t new_launches_ = 0;  // that are begun and not yet looked at
  bool is_new_ = true;
  std::uint64_t new_at_launch_ = 0;        // the launches when something new was last taken note of
  std::uint64_t full_scan_at_launch_ = 0;  // a proven job's next
};

}  // namespace spillway::interposer
