#include "interposer/execute/residency/spare_release.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

constexpr int kCallsBetweenTries = 16;

size_t Beyond(size_t bytes, size_t of_bytes) { return bytes - std::min(bytes, of_bytes); }

}  // namespace

size_t SpareRelease::UnusedBytes() const {
  return Beyond(chunks_->held_bytes(), counters_->wanted_bytes);
}

void SpareRelease::BeforeTaking(size_t bytes) {
  if (is_on_) RetireBeforeCreating(bytes);
}

void SpareRelease::Took(size_t held_before_bytes) {
  const size_t created_bytes = Beyond(chunks_->held_bytes(), held_before_bytes);
  if (is_on_ && created_bytes > 0) spare_.Created(created_bytes);
}

void SpareRelease::NoteAllocation(size_t bytes) {
  if (is_on_) spare_.Note(Beyond(UnusedBytes(), bytes));
}

// So that no memory is created beside freed ranges of other sizes. Does so while they exceed what
// is kept, or the job would hold too much.
void SpareRelease::RetireBeforeCreating(size_t bytes) {
  const auto mapped_bytes = [this] { return Beyond(UnusedBytes(), chunks_->free_bytes()); };
  while (chunks_->free_bytes() < bytes &&
         (WouldHoldTooMuch(bytes, 0) || mapped_bytes() > spare_.keep_bytes())) {
    if (!freed_->YieldIdle()) return;
  }
}

// A job may hold an eighth more than it ever wanted, or half more where a pool would hold that: the
// driver's hold up to 1.4 times what a trainer's tensors occupy (docs/pytorch.md).
bool SpareRelease::WouldHoldTooMuch(size_t bytes, size_t more_bytes) const {
  const size_t wanted_bytes =
      std::max(counters_->wanted_peak_bytes, counters_->wanted_bytes + bytes);
  const size_t beside_bytes = wanted_bytes / (is_pooled_ ? 2 : 8);
  const size_t most_bytes = wanted_bytes + beside_bytes + SpareMemory::kLeastBytes + more_bytes;
  return chunks_->held_bytes() + Beyond(bytes, chunks_->free_bytes()) > most_bytes;
}

bool SpareRelease::MustAwait(size_t bytes) {
  if (freed_->HasOfSize(bytes) || !WouldHoldTooMuch(bytes, SpareMemory::kMostBusyBytes))
    return false;
  freed_->MarkBusy();
  RetireBeforeCreating(bytes);
  return WouldHoldTooMuch(bytes, SpareMemory::kMostBusyBytes);
}

void SpareRelease::GiveBack(After after) {
  if (!is_on_) return;
  spare_.Note(UnusedBytes());
  const bool is_due = after == After::kWait || pause_-- <= 0;
  if (UnusedBytes() <= spare_.keep_bytes() || !is_due) return;
  pause_ = 0;
  if (Release()) return;
  freed_->MarkBusy();
  if (after == After::kFree || !Release()) pause_ = kCallsBetweenTries;
}

// A range goes if most of it must: the next iteration would have to map the rest of it anew. False
// when some of the memory is busy.
bool SpareRelease::Release() {
  size_t left_bytes = UnusedBytes() - spare_.keep_bytes(), given_bytes = 0;
  do {
    const size_t released_bytes = chunks_->ReleaseFree(left_bytes);
    given_bytes += released_bytes;
    left_bytes -= std::min(left_bytes, released_bytes);
  } while (left_bytes >= kGranuleBytes && freed_->YieldOldestIdle(2 * left_bytes));
  spare_.GaveBack(given_bytes);
  return left_bytes < kGranuleBytes || !freed_->AnyIsBusy();
}

}  // namespace spillway::interposer
