// Without a budget, memory that no allocation has goes back to the device. (spare_memory.h)
#include <algorithm>

#include "interposer/execute/residency.h"

namespace spillway::interposer {

namespace {

constexpr int kCallsBetweenTries = 16;
constexpr int kMarkedAtOnce = 64;

}  // namespace

size_t Residency::UnusedBytes() const {
  return chunks_.held_bytes() - std::min(chunks_.held_bytes(), counters_->wanted_bytes);
}

bool Residency::TakeChunks(size_t bytes, Chunks* out) {
  if (!gives_back_) return TakeAny(bytes, out);
  RetireBeforeCreating(bytes);
  const size_t held_bytes = chunks_.held_bytes();
  const bool taken = TakeAny(bytes, out);
  if (chunks_.held_bytes() > held_bytes) spare_.Created(chunks_.held_bytes() - held_bytes);
  return taken;
}

// Lets freed ranges of other sizes serve the allocation, so that no memory is created beside them.
// Does so while they exceed what is kept, or the job would hold an eighth more than it ever wanted.
void Residency::RetireBeforeCreating(size_t bytes) {
  const auto mapped_bytes = [this] {
    return UnusedBytes() - std::min(UnusedBytes(), chunks_.free_bytes());
  };
  while (chunks_.free_bytes() < bytes &&
         (WouldHoldTooMuch(bytes, 0) || mapped_bytes() > spare_.keep_bytes())) {
    if (!RetireIdle(RetireFirst::kLargest)) return;
  }
}

bool Residency::WouldHoldTooMuch(size_t bytes, size_t more_bytes) const {
  const size_t wanted_bytes =
      std::max(counters_->wanted_peak_bytes, counters_->wanted_bytes + bytes);
  const size_t most_bytes = wanted_bytes + wanted_bytes / 8 + SpareMemory::kLeastBytes + more_bytes;
  return chunks_.held_bytes() + bytes - std::min(bytes, chunks_.free_bytes()) > most_bytes;
}

bool Residency::MustAwaitSpare(size_t bytes) {
  const auto any = [](const Range*) { return true; };
  if (freed_.FindOfSize(bytes, any) || !WouldHoldTooMuch(bytes, SpareMemory::kMostBusyBytes))
    return false;
  MarkBusySpare();
  RetireBeforeCreating(bytes);
  return WouldHoldTooMuch(bytes, SpareMemory::kMostBusyBytes);
}

void Residency::GiveBackSpare(After after) {
  if (!gives_back_) return;
  spare_.Note(UnusedBytes());
  const bool is_due = after == After::kWait || spare_pause_-- <= 0;
  if (UnusedBytes() <= spare_.keep_bytes() || !is_due) return;
  spare_pause_ = 0;
  if (ReleaseSpare()) return;
  MarkBusySpare();
  if (after == After::kFree || !ReleaseSpare()) spare_pause_ = kCallsBetweenTries;
}

// The one freed longest ago: memory that is taken again all the time is younger.
bool Residency::RetireOldestIdle() {
  for (Range* range = freed_.oldest(); range; range = FreedRanges::Younger(range)) {
    if (range->place != Place::kDevice || !IsIdle(range)) continue;
    freed_.Remove(range);
    Retire(range);
    return true;
  }
  return false;
}

// False when some of it is busy.
bool Residency::ReleaseSpare() {
  size_t left_bytes = UnusedBytes() - spare_.keep_bytes(), given_bytes = 0;
  do {
    const size_t released_bytes = chunks_.ReleaseFree(left_bytes);
    given_bytes += released_bytes;
    left_bytes -= released_bytes;
  } while (left_bytes >= kGranuleBytes && RetireOldestIdle());
  spare_.GaveBack(given_bytes);
  return left_bytes < kGranuleBytes;
}

void Residency::MarkBusySpare() {
  int marked = 0;
  for (Range* range = freed_.oldest(); range && marked < kMarkedAtOnce;
       range = FreedRanges::Younger(range)) {
    if (range->place != Place::kDevice) continue;
    for (Use use : range->ready_after.items()) timeline_->EventFor(use);
    ++marked;
  }
  timeline_->Poll();
}

}  // namespace spillway::interposer
