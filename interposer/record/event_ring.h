// One thread's recorded events: a queue with one writer and one reader.
//
// The ring's thread calls Put; the recorder's reader (recorder.h) calls Front and Pop. Another
// thread may take over an ended thread's ring; rings are never freed.
// Invariants
//  1. A ring serves one recorder at a time, until that recorder is destroyed.
//  2. Tickets ascend within a ring.
//  3. Without room Put is refused and takes no ticket.
// Never: waits, locks, or allocates in Put.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

using RecordedTouch = scheduler::JobTouch;

// The form in a ring. Allocation ids are below 2^62.
constexpr std::uint64_t PackTouch(RecordedTouch touch) {
  return touch.allocation << 2 | (touch.reads ? 2u : 0u) | (touch.writes ? 1u : 0u);
}
constexpr RecordedTouch UnpackTouch(std::uint64_t word) {
  return {.allocation = word >> 2, .writes = (word & 1) != 0, .reads = (word & 2) != 0};
}

enum class RecordedKind : std::uint8_t { kAllocate, kFree, kOperation, kSynchronize };

struct RecordedEvent {
  std::uint64_t ticket = 0;  // the order among all threads' events
  RecordedKind kind = RecordedKind::kSynchronize;
  std::uint32_t touch_count = 0;
  std::uint32_t sample = 0;  // of an operation's duration (duration_samples.h); 0: none
  std::uint64_t value = 0;
  std::uint64_t allocation = 0;
};

class EventRing {
 public:
  static constexpr std::size_t kWords = std::size_t{1} << 16;
  static constexpr std::size_t kMostTouches = kWords / 8;

  // Put sets `event.ticket` by adding to `tickets`.
  bool Put(const RecordedEvent& event, std::span<const RecordedTouch> touches,
           std::atomic<std::uint64_t>* tickets);

  bool Front(RecordedEvent* out) const;
  void CopyTouches(std::uint32_t count, RecordedTouch* out) const;
  void Pop(const RecordedEvent& front);

 private:
  static constexpr std::size_t kHeaderWords = 4;
  std::uint64_t& At(std::uint64_t position) { return words_[position % kWords]; }
  std::uint64_t At(std::uint64_t position) const { return words_[position % kWords]; }

  alignas(64) std::atomic<std::uint64_t> written_{0};
  std::uint64_t known_read_ = 0;  // the writer's lower bound of read_
  alignas(64) std::atomic<std::uint64_t> read_{0};

 public:
  // Constant once in the list of all rings (recorder.cpp).
  EventRing* next = nullptr;
  std::uint32_t number = 0;                 // among all rings, from 1
  std::atomic<const void*> owner{nullptr};  // identifies the writing thread; null: it has ended
  std::atomic<std::uint64_t> recorder{0};   // serial of the recorder; 0: none

 private:
  std::uint64_t words_[kWords];  // uninitialised: unused pages stay unallocated
};

inline bool EventRing::Put(const RecordedEvent& event, std::span<const RecordedTouch> touches,
                           std::atomic<std::uint64_t>* tickets) {
  if (touches.size() > kMostTouches) return false;
  const std::uint64_t begin = written_.load(std::memory_order_relaxed);
  const std::size_t words = kHeaderWords + touches.size();
  if (words > kWords - (begin - known_read_)) {
    known_read_ = read_.load(std::memory_order_acquire);
    if (words > kWords - (begin - known_read_)) return false;
  }
  At(begin) = tickets->fetch_add(1, std::memory_order_relaxed);
  At(begin + 1) = static_cast<std::uint64_t>(event.kind) | std::uint64_t{touches.size()} << 8 |
                  std::uint64_t{event.sample} << 32;
  At(begin + 2) = event.value;
  At(begin + 3) = event.allocation;
  for (std::size_t i = 0; i < touches.size(); ++i)
    At(begin + kHeaderWords + i) = PackTouch(touches[i]);
  written_.store(begin + words, std::memory_order_release);
  return true;
}

inline bool EventRing::Front(RecordedEvent* out) const {
  const std::uint64_t begin = read_.load(std::memory_order_relaxed);
  if (begin == written_.load(std::memory_order_acquire)) return false;
  const std::uint64_t packed = At(begin + 1);
  *out = {.ticket = At(begin),
          .kind = static_cast<RecordedKind>(packed & 0xff),
          .touch_count = static_cast<std::uint32_t>(packed >> 8 & 0xffffff),
          .sample = static_cast<std::uint32_t>(packed >> 32),
          .value = At(begin + 2),
          .allocation = At(begin + 3)};
  return true;
}

inline void EventRing::CopyTouches(std::uint32_t count, RecordedTouch* out) const {
  const std::uint64_t begin = read_.load(std::memory_order_relaxed) + kHeaderWords;
  for (std::uint32_t i = 0; i < count; ++i) out[i] = UnpackTouch(At(begin + i));
}

inline void EventRing::Pop(const RecordedEvent& front) {
  const std::uint64_t begin = read_.load(std::memory_order_relaxed);
  read_.store(begin + kHeaderWords + front.touch_count, std::memory_order_release);
}

}  // namespace spillway::interposer
