// How long operations take on the device: an event before and one after each operation of a few
// iterations.
//
// IsOn, Before and After are called around launches and copies, on any thread, with the job's
// context current; Start, Stop, Read and Release by the recorder's reader. Owns its events until
// Release.
//
// Invariants
//  1. While it is off, IsOn is one relaxed load, and nothing is recorded on a stream.
//  2. A sample is read only when the device has passed its second event: nothing waits.
//  3. At most as many operations are sampled as Start says.
// Source: cuEventElapsedTime (resolution of half a microsecond).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// Of one operation; lives on the caller's stack from BeforeLaunch to Enqueued.
struct Sample {
  std::uint32_t number = 0;  // 0: not sampled
};

class DurationSamples {
 public:
  static constexpr std::uint32_t kMost = 1 << 17;

  bool IsOn() const { return on_.load(std::memory_order_relaxed); }
  void Before(CUstream stream, Sample* sample);
  void After(CUstream stream, const Sample& sample);

  // The numbers given out before mean nothing any more.
  void Start(std::uint32_t most);
  void Stop() { on_.store(false, std::memory_order_relaxed); }
  std::uint32_t taken() const;

  enum class State : std::uint8_t { kNotYet, kRead, kLost };
  State Read(std::uint32_t number, std::int64_t* duration_ns);
  // From the beginning of one sampled operation to the end of a later one, both of which have been
  // read; 0 where that is not known.
  std::int64_t SpanNs(std::uint32_t first, std::uint32_t last);
  // Gives the events back. The job's context is current; sampling has been off since the last
  // iteration.
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
  std::atomic<Pair*> blocks_[kMost / kBlockPairs] = {};  // never given back
};

}  // namespace spillway::interposer
