// Numbers that calls on one stream note, nearly always without an atomic read-modify-write.
//
// JobCalls takes the turn of a call's stream for the length of the call, on the calling thread.
//
// Note [A stream's turn]
// Several threads may make calls on one stream at once. A launch notes a number for each range that
// it names, and a read-modify-write for each would be a quarter of the launch's whole cost. So each
// number has two cells. The call that has its stream's turn is the only writer of the first cell:
// loads and stores suffice. A call that finds the turn taken does not wait. It changes the second
// cell by read-modify-write. A reader combines both cells. The turn is taken by an acquiring
// exchange and given back by a release store. So the writers of the first cell follow each other,
// and each sees what the one before it wrote.
//
// Invariants
//  1. At most one call at a time has the turn of a stream.
// Never: waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/schedule_point.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

class StreamTurn {
 public:
  StreamTurn() = default;
  ~StreamTurn() { GiveBack(); }
  StreamTurn(const StreamTurn&) = delete;
  StreamTurn& operator=(const StreamTurn&) = delete;

  void TryToTake(std::atomic<bool>* taken) {
    const bool was_taken = taken->exchange(true, std::memory_order_acquire);
    if (!was_taken || !ordering_rules::kTurnsExclude) mine_ = taken;
  }
  void GiveBack() {
    if (auto* const taken = std::exchange(mine_, nullptr))
      taken->store(false, std::memory_order_release);
  }
  bool IsMine() const { return mine_ != nullptr; }

 private:
  std::atomic<bool>* mine_ = nullptr;
};

// `has_turn` below: the caller has the turn of the one stream that the number is about.

class LatestNumber {
 public:
  void Raise(std::uint64_t to, bool has_turn) {
    if (!has_turn) return RaiseBeside(to);
    if (in_turn_.load(std::memory_order_relaxed) >= to) return;
    base::SchedulePoint();
    in_turn_.store(to, std::memory_order_relaxed);
  }
  std::uint64_t Read() const {
    return std::max(in_turn_.load(std::memory_order_relaxed),
                    beside_.load(std::memory_order_relaxed));
  }
  // Nobody raises it meanwhile.
  void Clear() {
    in_turn_.store(0, std::memory_order_relaxed);
    beside_.store(0, std::memory_order_relaxed);
  }

 private:
  [[gnu::noinline, gnu::cold]] void RaiseBeside(std::uint64_t to) {
    std::uint64_t seen = beside_.load(std::memory_order_relaxed);
    while (seen < to && !beside_.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  }

  std::atomic<std::uint64_t> in_turn_{0};
  std::atomic<std::uint64_t> beside_{0};
};

class CallCount {
 public:
  // What the caller wrote before is visible to who reads the new count.
  void Add(bool has_turn) {
    if (!has_turn) {
      beside_.fetch_add(1, std::memory_order_release);
      return;
    }
    const std::uint64_t before = in_turn_.load(std::memory_order_relaxed);
    base::SchedulePoint();
    in_turn_.store(before + 1, std::memory_order_release);
  }
  std::uint64_t Read() const {
    return in_turn_.load(std::memory_order_acquire) + beside_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<std::uint64_t> in_turn_{0};
  std::atomic<std::uint64_t> beside_{0};
};

}  // namespace spillway::interposer
