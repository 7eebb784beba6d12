// Whether a job is idle: it made no call for a while, waits in no call, and its device, when asked,
// had no work. Calls alone do not show whether a job waits for its device or for a CPU.
//
// Invariants
//  1. A job is idle only if its device was asked after its last activity, and has answered.
//  2. Any activity makes it active at once.
//  3. Memory that is lent for less than kShortNs is not worth its moves. After so short an idleness
//     the job is given twice the time, up to kLongestAfterNs, until a longer one.
//  4. While jobs take turns on the device, the job is idle after kInTurnsNs each time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::interposer {

class Idleness {
 public:
  static constexpr std::uint64_t kAfterNs = 1'000'000'000;
  static constexpr std::uint64_t kLongestAfterNs = 4 * kAfterNs;
  static constexpr std::uint64_t kShortNs = 3 * kAfterNs;
  static constexpr std::uint64_t kInTurnsNs = 100'000'000;

  void Begin(std::uint64_t now_ns) {
    after_ns_ = kAfterNs;
    Wake(now_ns);
  }
  // `operations`: how many the job has begun. `in_call`: it waits in a call.
  void NoteActivity(std::uint64_t operations, bool in_call, std::uint64_t now_ns) {
    if (operations != operations_ || in_call) {
      if (device_ == Device::kIdle && !in_turns_)
        after_ns_ =
            now_ns - idle_ns_ < kShortNs ? std::min(2 * after_ns_, kLongestAfterNs) : kAfterNs;
      Wake(now_ns);
    }
    operations_ = operations;
  }
  void SetInTurns(bool in_turns) { in_turns_ = in_turns; }
  bool IsActive() const { return device_ != Device::kIdle; }

  bool ShouldAsk(std::uint64_t now_ns) const {
    return device_ == Device::kUnknown && now_ns - busy_ns_ >= (in_turns_ ? kInTurnsNs : after_ns_);
  }
  void Asks() { device_ = Device::kAsked; }
  // The answer is void if the job was active meanwhile.
  void Answered(bool device_has_work, std::uint64_t now_ns) {
    if (device_ != Device::kAsked) return;
    if (device_has_work) return Wake(now_ns);
    device_ = Device::kIdle;
    idle_ns_ = now_ns;
  }

 private:
  enum class Device : std::uint8_t { kUnknown, kAsked, kIdle };

  void Wake(std::uint64_t now_ns) {
    busy_ns_ = now_ns;
    device_ = Device::kUnknown;
  }

  std::uint64_t operations_ = 0;
  std::uint64_t busy_ns_ = 0, idle_ns_ = 0;
  std::uint64_t after_ns_ = kAfterNs;
  bool in_turns_ = false;
  Device device_ = Device::kUnknown;
};

}  // namespace spillway::interposer
