#include "interposer/execute/trust.h"

namespace spillway::interposer {

bool Trust::WantsCensus(std::uint64_t launches) {
  if (choice_ != ParkChoice::kAuto || opacity_ != Opacity::kNone) return false;
  if (proven_) return launches >= census_at_launch_;
  if (is_new_) {
    is_new_ = false;
    new_at_launch_ = launches;
    return !can_park_;
  }
  return launches - new_at_launch_ >= kSettledLaunches;
}

// The next census of a proven job comes when it has made as many launches again: all of them together cost as little as
// the last one.
void Trust::CensusMade(std::uint64_t launches, bool found_address) {
  if (found_address) {
    Opaque(Opacity::kUnexplainedAddress);
    return;
  }
  proven_ = true;
  census_at_launch_ = 2 * launches;
}

}  // namespace spillway::interposer
