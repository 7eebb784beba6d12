// How long a call waits for an idle device while a stream waits for the program.
//
// The program may let the stream go on only after the call that waits here, and may do so often. So
// each wait in vain halves the next, and until something has completed there is no next. A wait
// that was worth it doubles the next.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::interposer {

class VainWaits {
 public:
  // `progress`: changes whenever something has completed.
  std::uint64_t PatienceNs(std::uint64_t progress) const {
    return is_hopeless_ && progress == hopeless_at_ ? 0 : patience_ns_;
  }
  void NoteFutile(std::uint64_t progress) {
    if (PatienceNs(progress) > 0) patience_ns_ = std::max(patience_ns_ / 2, kLeastNs);
    is_hopeless_ = true;
    hopeless_at_ = progress;
  }
  void NoteWorthwhile() {
    is_hopeless_ = false;
    patience_ns_ = std::min(patience_ns_ * 2, kMostNs);
  }

 private:
  static constexpr std::uint64_t kMostNs = 500'000'000;
  static constexpr std::uint64_t kLeastNs = 1'000'000;

  std::uint64_t patience_ns_ = kMostNs;
  std::uint64_t hopeless_at_ = 0;
  bool is_hopeless_ = false;
};

}  // namespace spillway::interposer
