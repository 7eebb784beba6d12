// Whether a job's memory may still grow: its peak has risen of late. Guarded by its owner's lock.
#pragma once

#include <cstdint>
#include <utility>

namespace spillway::interposer {

class Growth {
 public:
  // A job is settled once its peak has not risen for this long.
  static constexpr std::uint64_t kSettledAfterNs = 10'000'000'000;

  void Begin(std::uint64_t now_ns) { *this = Growth(now_ns); }
  void NotePeak(std::int64_t bytes, std::uint64_t now_ns) {
    if (bytes > std::exchange(peak_bytes_, bytes)) risen_ns_ = now_ns;
  }
  bool MayGoOn(std::uint64_t now_ns) const { return now_ns - risen_ns_ < kSettledAfterNs; }

  explicit Growth(std::uint64_t now_ns = 0) : risen_ns_(now_ns) {}

 private:
  std::int64_t peak_bytes_ = 0;
  std::uint64_t risen_ns_;
};

}  // namespace spillway::interposer
