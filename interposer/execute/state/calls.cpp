#include "interposer/execute/state/calls.h"

#include <atomic>

#include "base/schedule_point.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/state/range.h"

namespace spillway::interposer::calls {

namespace {

struct alignas(64) ThreadPlace {
  std::atomic<bool> owned{true};
  std::atomic<std::uint32_t> count{0};
  std::atomic<const Range*> named[kMostNamed] = {};
  ThreadPlace* next = nullptr;
};

constinit std::atomic<ThreadPlace*> places{nullptr};  // of all threads so far; never freed

ThreadPlace* TakeOver() {
  for (ThreadPlace* place = places.load(std::memory_order_acquire); place; place = place->next) {
    bool owned = false;
    if (place->owned.compare_exchange_strong(owned, true)) return place;
  }
  return nullptr;
}

ThreadPlace* Add() {
  auto* place = new ThreadPlace;
  place->next = places.load(std::memory_order_relaxed);
  while (!places.compare_exchange_weak(place->next, place, std::memory_order_release)) {
  }
  return place;
}

constinit thread_local ThreadPlace* my_place __attribute__((tls_model("initial-exec"))) = nullptr;

// Offers the place to other threads when this thread ends. A later destructor of the thread may
// make a call: that call takes a place anew and keeps it.
struct Ending {
  bool armed = false;
  ~Ending() {
    if (my_place) my_place->owned.store(false, std::memory_order_release);
    my_place = nullptr;
  }
};
thread_local Ending ending;

ThreadPlace* MyPlace() {
  if (my_place) return my_place;
  ending.armed = true;
  my_place = TakeOver();
  if (!my_place) my_place = Add();
  return my_place;
}

}  // namespace

bool Enter(Range* const* ranges, size_t count, std::uint64_t stream_serial) {
  if (count == 0) return true;
  ThreadPlace* const place = MyPlace();
  const std::uint32_t before = place->count.load(std::memory_order_relaxed);
  if (count > kMostNamed - before) return false;
  for (size_t i = 0; i < count; ++i)
    place->named[before + i].store(ranges[i], std::memory_order_release);
  const std::uint32_t after = before + static_cast<std::uint32_t>(count);
  if (ordering_rules::kNamesComeBeforeFastPath)
    place->count.store(after, std::memory_order_seq_cst);
  base::SchedulePoint();
  for (size_t i = 0; i < count; ++i) {
    if (ranges[i]->fast_path.IsOpenFor(stream_serial)) continue;
    place->count.store(before, std::memory_order_release);
    return false;
  }
  if (ordering_rules::kNamesComeBeforeFastPath) return true;
  for (int step = 0; step < 64; ++step)
    base::SchedulePoint();  // gives others time to close the fast path
  place->count.store(after, std::memory_order_seq_cst);
  return true;
}

void Leave(size_t count) {
  if (count == 0) return;
  const std::uint32_t before = my_place->count.load(std::memory_order_relaxed);
  my_place->count.store(before - static_cast<std::uint32_t>(count), std::memory_order_release);
}

bool Names(const Range* range) {
  for (const ThreadPlace* place = places.load(std::memory_order_acquire); place;
       place = place->next) {
    const std::uint32_t count = place->count.load(std::memory_order_seq_cst);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (place->named[i].load(std::memory_order_acquire) == range) return true;
    }
  }
  return false;
}

bool OthersInProgress() {
  for (const ThreadPlace* place = places.load(std::memory_order_acquire); place;
       place = place->next) {
    if (place != my_place && place->count.load(std::memory_order_seq_cst)) return true;
  }
  return false;
}

}  // namespace spillway::interposer::calls
