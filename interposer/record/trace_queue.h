// A bounded queue for trace entries, from the program's threads to the trace thread.
//
// D. Vyukov's bounded queue: each place's turn number tells whether it waits for a writer or a
// reader.
// Invariants
//  1. Without room Put is refused and counted. Operations leave the last quarter to rarer entries.
// Never: waits, locks, allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interposer/record/trace_event.h"

namespace spillway::interposer {

class TraceQueue {
 public:
  static constexpr std::uint64_t kPlaces = 1 << 15;

  TraceQueue() {
    for (std::uint64_t i = 0; i < kPlaces; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
  }

  bool Put(const TraceEvent& event) {
    const std::uint64_t room = event.kind == TraceKind::kOperation ? kPlaces / 4 * 3 : kPlaces;
    std::uint64_t at = put_.load(std::memory_order_relaxed);
    for (;;) {
      Place& place = places_[at % kPlaces];
      const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
      const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
      if (turn < at || (taken < at && at - taken >= room)) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
      if (turn == at && put_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        place.event = event;
        place.turn.store(at + 1, std::memory_order_release);
        return true;
      }
      if (turn != at) at = put_.load(std::memory_order_relaxed);
    }
  }

  bool Take(TraceEvent* out) {
    const std::uint64_t at = taken_.load(std::memory_order_relaxed);
    Place& place = places_[at % kPlaces];
    if (place.turn.load(std::memory_order_acquire) != at + 1) return false;
    *out = place.event;
    place.turn.store(at + kPlaces, std::memory_order_release);
    taken_.store(at + 1, std::memory_order_relaxed);
    return true;
  }

  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<std::uint64_t> turn;
    TraceEvent event;
  };
  alignas(64) std::atomic<std::uint64_t> put_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  alignas(64) std::atomic<std::uint64_t> lost_{0};
  Place places_[kPlaces];
};

}  // namespace spillway::interposer
