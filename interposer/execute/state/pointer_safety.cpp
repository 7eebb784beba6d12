#include "interposer/execute/state/pointer_safety.h"

namespace spillway::interposer {

const char* NameOf(Standing standing) {
  switch (standing) {
    case Standing::kAssumedSafe:
      return "assumed safe";
    case Standing::kProven:
      return "proven";
    case Standing::kUnproven:
      return "unproven";
    case Standing::kUnsafe:
      return "unsafe";
    case Standing::kStays:
      break;
  }
  return "not evicted";
}

const char* NameOf(UnsafeReason unsafe_reason) {
  switch (unsafe_reason) {
    case UnsafeReason::kNone:
      return "";
    case UnsafeReason::kUnexplainedAddress:
      return "memory holds addresses that no copy put there";
    case UnsafeReason::kTooManyAddresses:
      return "copies put more addresses into memory than are kept";
    case UnsafeReason::kDeviceHeap:
      return "kernels allocate memory of their own";
    case UnsafeReason::kArena:
      return "an allocation is larger than the budget";
    case UnsafeReason::kReachesTooMuch:
      break;
  }
  return "a launch can reach more than half of the budget through pointers in memory";
}

Standing PointerSafety::standing() const {
  if (MustStay()) return Standing::kStays;
  if (choice_ == ParkChoice::kOff) return Standing::kAssumedSafe;
  if (choice_ == ParkChoice::kHost || unsafe_reason_ != UnsafeReason::kNone)
    return Standing::kUnsafe;
  return proven_ ? Standing::kProven : Standing::kUnproven;
}

bool PointerSafety::WantsFullScan(std::uint64_t launches) {
  if (choice_ != ParkChoice::kAuto || unsafe_reason_ != UnsafeReason::kNone) return false;
  if (proven_) return launches >= full_scan_at_launch_;
  if (!can_park_) return true;
  if (is_new_) {
    is_new_ = false;
    new_at_launch_ = launches;
    return false;
  }
  return !returns_ && launches - new_at_launch_ >= kSettledLaunches;
}

// The next full scan of a proven job comes after as many launches again. All its scans together
// then cost as little as the last one.
void PointerSafety::FullScanDone(std::uint64_t launches, bool found_address) {
  if (found_address) {
    MarkUnsafe(UnsafeReason::kUnexplainedAddress);
    return;
  }
  if (unsafe_reason_ != UnsafeReason::kNone) return;  // found out meanwhile
  // Where nothing can be parked, a launch that waits for room would wait for its own scan.
  proven_ = new_launches_ == 0 || !can_park_;
  returns_ = !proven_;
  full_scan_at_launch_ = 2 * launches;
}

bool PointerSafety::EndNew(Finding finding) {
  --new_launches_;
  if (finding == Finding::kAddress) MarkUnsafe(UnsafeReason::kUnexplainedAddress);
  if (finding == Finding::kUnknown) AwaitNewWork();
  const bool is_proven_again = returns_ && new_launches_ == 0;
  if (!is_proven_again) return false;
  returns_ = false;
  return proven_ = true;
}

}  // namespace spillway::interposer
