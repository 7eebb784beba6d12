// Vector clocks: one counter per stream, joined wherever CUDA orders two streams.
//
// Used by the orderer on one thread; plain values.
//
// Invariant: an access (stream, number) is ordered before whoever holds a clock whose entry for
// that stream is at least that number.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

// A stream in the model. Each thread has its own legacy stream: what that orders between threads
// depends on timing, so programs may not rely on it.
using Lane = int;
inline constexpr int kMaximumLanes = 40;

constexpr Lane LaneOf(int stream, int thread) {
  return stream < kFirstCreatedStream ? thread * kFirstCreatedStream + stream
                                      : stream + (kMaximumThreads - 1) * kFirstCreatedStream;
}

struct Access {
  Lane lane = kNone;
  std::uint32_t number = 0;
};

class Clock {
 public:
  bool Covers(const Access& access) const {
    return access.lane == kNone || entries_[access.lane] >= access.number;
  }
  void Join(const Clock& other) {
    for (int i = 0; i < kMaximumLanes; ++i) entries_[i] = std::max(entries_[i], other.entries_[i]);
  }
  Access Advance(Lane lane) { return {lane, ++entries_[lane]}; }

 private:
  std::array<std::uint32_t, kMaximumLanes> entries_{};
};

struct History {
  Access last_write;
  std::map<Lane, std::uint32_t> reads;

  void AddRead(const Access& access) {
    reads[access.lane] = std::max(reads[access.lane], access.number);
  }
  void SetWrite(const Access& access) {
    last_write = access;
    reads.clear();
  }
  void CollectReads(std::vector<Access>& into) const {
    for (const auto& [lane, number] : reads) into.push_back({lane, number});
  }
};

}  // namespace spillway::fuzz
