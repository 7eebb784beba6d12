// Whether a job is idle, so that its memory may be lent: it called nothing for a while, waits in no
// call, and its device, when asked, had nothing to do. Where a job waits for its device, or for a
// processor, cannot be told from what it calls alone.
//
// A value of the agent's session, guarded by its lock; pure.
//
// Invariants
//  1. Idle is only whose device has been asked since it last did something. Until there is an
//  answer it is active.
//  2. What it does makes it active at once.
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
  // How many operations it has begun, and whether it waits in a call.
  void Saw(std::uint64_t operations, bool in_call, std::uint64_t now_ns) {
    if (operations != operations_ || in_call) Begin(now_ns);
    operations_ = operations;
  }
  bool IsActive() const { return device_ != Device::kIdle; }

  bool IsToAsk(std::uint64_t now_ns) const {
    return device_ == Device::kUnknown && now_ns - busy_ns_ >= kAfterNs;
  }
  void Asks() { device_ = Device::kAsked; }
  // Void when the job did something meanwhile.
  void Answered(bool device_has_work, std::uint64_t now_ns) {
    if (device_ != Device::kAsked) return;
    if (device_has_work) return Begin(now_ns);
    device_ = Device::kIdle;
  }

 private:
  enum class Device : std::uint8_t { kUnknown, kAsked, kIdle };

  std::uint64_t operations_ = 0;
  std::uint64_t busy_ns_ = 0;  // when it was last seen to do something
  Device device_ = Device::kUnknown;
};

}  // namespace spillway::interposer
