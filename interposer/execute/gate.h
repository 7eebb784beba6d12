// Whether calls may use an allocation without taking the lock, and which uses they left meanwhile.
//
// IsOpenFor and RecentUses::Note are called on any thread, on the launch path; the others with the state lock held.
// Why this is safe: Note [Gates] in calls.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "interposer/execute/timeline.h"

namespace spillway::interposer {

class Gate {
 public:
  bool IsOpenFor(std::uint64_t stream_serial) const {
    const std::uint64_t open_for = open_for_.load(std::memory_order_seq_cst);
    return open_for == stream_serial || open_for == kAll;
  }
  void Close() { open_for_.store(kNobody, std::memory_order_seq_cst); }
  void OpenForAll() { open_for_.store(kAll, std::memory_order_seq_cst); }
  // For a stream that is ordered behind all that the allocation's users must wait for.
  void OpenFor(std::uint64_t stream_serial) { open_for_.store(stream_serial, std::memory_order_seq_cst); }

 private:
  static constexpr std::uint64_t kNobody = 0;
  static constexpr std::uint64_t kAll = 1;  // no stream's serial number
  std::atomic<std::uint64_t> open_for_{kNobody};
};

// The last use on each of a few streams, each in a cache line of its own: threads that launch on streams of their own
// write to none that another one writes to.
class RecentUses {
 public:
  // False when uses on too many streams are kept already.
  bool Note(Use use) {
    for (Slot& slot : slots_) {
      StreamState* stream = slot.stream.load(std::memory_order_relaxed);
      if (!stream && slot.stream.compare_exchange_strong(stream, use.stream)) stream = use.stream;
      if (stream != use.stream) continue;
      std::uint64_t seen = slot.sequence.load(std::memory_order_relaxed);
      while (seen < use.sequence && !slot.sequence.compare_exchange_weak(seen, use.sequence)) {
      }
      return true;
    }
    return false;
  }
  // Only while no call can note any more: the gate is closed, and no call names the allocation.
  void MoveTo(UseList* uses) {
    for (Slot& slot : slots_) {
      StreamState* const stream = slot.stream.load(std::memory_order_relaxed);
      if (!stream) return;
      uses->Add({stream, slot.sequence.load(std::memory_order_relaxed)});
      slot.stream.store(nullptr, std::memory_order_relaxed);
      slot.sequence.store(0, std::memory_order_relaxed);
    }
  }

 private:
  struct alignas(64) Slot {
    std::atomic<StreamState*> stream{nullptr};
    std::atomic<std::uint64_t> sequence{0};
  };
  Slot slots_[4];
};

}  // namespace spillway::interposer
