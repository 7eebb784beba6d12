// How long operations take on the device, by events around them in a few iterations.
//
// IsOn, Before and After enclose launches and copies, on any thread, with the job's context
// current.
// Invariants
//  1. While sampling is off, IsOn is one relaxed load and streams get no events.
//  2. A sample is read only after the device has passed its second event: nothing waits.
//  3. At most as many operations are sampled as Start says.
// Source: cuEventElapsedTime (resolution of half a microsecond).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct Sample {
  std::uint32_t number = 0;  // 0: not sampled
};

class DurationSamples {
 public:
  static constexpr std::uint32_t kMost = 1 << 17;

  bool IsOn() const { return on_.load(std::memory_order_relaxed); }
  void Before(CUstream stream, Sample* sample);
  void After(CUstream stream, const Sample& sample);

  // Numbers given out before become invalid.
  void Start(std::uint32_t most);
  void Stop() { on_.store(false, std::memory_order_relaxed); }
  std::uint32_t taken() const;

  enum class State : std::uint8_t { kNotYet, kRead, kLost };
  State Read(std::uint32_t number, std::int64_t* duration_ns);
  // From the first's begin to the last's end, both read before; 0: unknown.
  std::int64_t SpanNs(std::uint32_t first, std::uint32_t last);
  // Context current, sampling off for an iteration.
  void Release();

 private:
  struct Pair {
    CUevent before = nullptr;
    CUevent after = nullptr;
    std::atomic<bool> is_whole{false};
  };
  static constexpr std::uint32_t kBlockPairs = 1024;
  Pair* At(std::uint32_t number) {
    return &blocks_[(number - 1) / kBlockPairs].load(
        std::memory_order_acquire)[(number - 1) % kBlockPairs];
  }

  std::atomic<bool> on_{false};
  std::atomic<std::uint32_t> taken_{0};
  std::atomic<std::uint32_t> most_{0};
  std::atomic<Pair*> blocks_[kMost / kBlockPairs] = {};
};

}  // namespace spillway::interposer
