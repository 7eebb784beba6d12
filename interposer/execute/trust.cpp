#include "interposer/execute/trust.h"

namespace spillway::interposer {

const char* NameOf(Standing standing) {
  switch (standing) {
    case Standing::kVouched:
      return "vouched";
    case Standing::kProven:
      return "proven";
    case Standing::kUnproven:
      return "unproven";
    case Standing::kOpaque:
      return "opaque";
    case Standing::kStays:
      break;
  }
  return "not evicted";
}

const char* NameOf(Opacity opacity) {
  switch (opacity) {
    case Opacity::kNone:
      return "";
    case Opacity::kUnexplainedAddress:
      return "memory holds addresses that no copy put there";
    case Opacity::kTooManyAddresses:
      return "copies put more addresses into memory than are kept";
    case Opacity::kDeviceHeap:
      return "kernels allocate memory of their own";
    case Opacity::kReachesTooMuch:
      break;
  }
  return "a launch can reach more than half of the budget through pointers in memory";
}

Standing Trust::standing() const {
  if (MustStay()) return Standing::kStays;
  if (choice_ == ParkChoice::kOff) return Standing::kVouched;
  if (choice_ == ParkChoice::kHost || opacity_ != Opacity::kNone) return Standing::kOpaque;
  return proven_ ? Standing::kProven : Standing::kUnproven;
}

bool Trust::WantsCensus(std::uint64_t launches) {
  if (choice_ != ParkChoice::kAuto || opacity_ != Opacity::kNone) return false;
  if (proven_) return launches >= census_at_launch_;
  if (!can_park_) return true;
  if (is_new_) {
    is_new_ = false;
    new_at_launch_ = launches;
    return false;
  }
  return !returns_ && launches - new_at_launch_ >= kSettledLaunches;
}

// The next census of a proven job comes when it has made as many launches again: all of them together cost as little as
// the last one.
void Trust::CensusMade(std::uint64_t launches, bool found_address) {
  if (found_address) {
    Opaque(Opacity::kUnexplainedAddress);
    return;
  }
  // Where nothing can be parked a launch that waits for room would wait for its own look.
  proven_ = new_launches_ == 0 || !can_park_;
  returns_ = !proven_;
  census_at_launch_ = 2 * launches;
}

bool Trust::EndNew(Finding finding) {
  --new_launches_;
  if (finding == Finding::kAddress) Opaque(Opacity::kUnexplainedAddress);
  if (finding == Finding::kUnknown) SomethingNew();
  const bool is_proven_again = returns_ && new_launches_ == 0;
  if (!is_proven_again) return false;
  returns_ = false;
  return proven_ = true;
}

}  // namespace spillway::interposer
