// Whether a job is idle: it made no call for a while, waits in no call, and its device, when asked,
// had no work. Calls alone do not show whether a job waits for its device or for a CPU.
//
// Invariants
//  1. A job is idle only if its device was asked after its last activity, and has answered.
//  2. Any activity makes it active at once.
#pragma once

#include <cstdint>

namespace spillway::interposer {

class Idleness {
 public:
  static constexpr std::uint64_t kAfterNs = 1'000'000'000;

  void Begin(std::uint64_t now_ns) {
    busy_ns_ = now_ns;
    device_ = Device::kUnknown;
  }
  // `operations`: how many the job has begun. `in_call`: it waits in a call.
  void NoteActivity(std::uint64_t operations, bool in_call, std::uint64_t now_ns) {
    if (operations != operations_ || in_call) Begin(now_ns);
    operations_ = operations;
  }
  bool IsActive() const { return device_ != Device::kIdle; }

  bool ShouldAsk(std::uint64_t now_ns) const {
    return device_ == Device::kUnknown && now_ns - busy_ns_ >= kAfterNs;
  }
  void Asks() { device_ = Device::kAsked; }
  // The answer is void if the job was active meanwhile.
  void Answered(bool device_has_work, std::uint64_t now_ns) {
    if (device_ != Device::kAsked) return;
    if (device_has_work) return Begin(now_ns);
    device_ = Device::kIdle;
  }

 private:
  enum class Device : std::uint8_t { kUnknown, kAsked, kIdle };

  std::uint64_t operations_ = 0;
  std::uint64_t busy_ns_ = 0;
  Device device_ = Device::kUnknown;
};

}  // namespace spillway::interposer
