#include "interposer/execute/spilling.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/host_memory.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

void Spilling::SetFile(std::shared_ptr<SpillFile> file) {
  const StateLock lock(state_.locks);
  file_ = std::move(file);
  has_failed_ = false;
  serial_.store(file_ ? file_->serial() : 0);
  file_bytes_.store(file_ ? file_->bytes() : 0);
}

void Spilling::CloseEmptyFile() {
  const StateLock lock(state_.locks);
  if (!file_ || !file_->IsEmpty() || state_.residency.copies().spilled().stored_bytes() > 0) return;
  file_.reset();
  serial_.store(0);
  file_bytes_.store(0);
}

bool Spilling::StoreOne(base::FunctionRef<bool()> goes_on) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  SpilledCopies::Store store;
  if (!BeginStore(&store)) return false;
  const bool is_written = WriteBlocks(&store, goes_on);
  const StateLock lock(state_.locks);
  state_.residency.copies().spilled().End(&store, is_written);
  return is_written;
}

// Sorted anew for each range: the job may have run meanwhile. A job has at most some ten thousand
// ranges, and each is written for milliseconds.
bool Spilling::BeginStore(SpilledCopies::Store* store) {
  const StateLock lock(state_.locks);
  if (!file_ || has_failed_) return false;
  std::vector<Range*> candidates;
  state_.residency.ForEachLive([&](Range* range) {
    if (range->place == Place::kHost && range->host.data) candidates.push_back(range);
  });
  std::sort(candidates.begin(), candidates.end(), [](const Range* one, const Range* other) {
    return one->last_touch < other->last_touch;
  });
  SpilledCopies& spilled = state_.residency.copies().spilled();
  const std::shared_ptr<SpillFile> file = file_;
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](Range* range) { return spilled.Begin(range, file, store); });
}

bool Spilling::WriteBlocks(SpilledCopies::Store* store, base::FunctionRef<bool()> goes_on) {
  const auto aligned = driver::NewOrdinaryHostMemory(SpillFile::kBlockBytes);
  if (!aligned) return false;
  auto* const block = static_cast<std::byte*>(aligned->data);
  bool is_written = true;
  for (size_t i = 0; i < store->blocks.size() && is_written; ++i) {
    is_written = goes_on();
    if (is_written) {
      const StateLock lock(state_.locks);
      is_written = state_.residency.copies().spilled().CopyBlock(*store, i, block);
    }
    if (!is_written) break;
    const base::Status status = store->file->Write(&store->blocks[i], block);
    is_written = status.ok();
    if (!is_written) NoteFailure(*store->file, status);
    const StateLock lock(state_.locks);
    state_.counters.spill_written_bytes += is_written ? SpillFile::kBlockBytes : 0;
  }
  driver::DeleteHostMemory(*aligned);
  return is_written;
}

void Spilling::NoteFailure(const SpillFile& file, const base::Status& status) {
  const StateLock lock(state_.locks);
  ++state_.counters.spill_failures;
  if (file_.get() != &file || std::exchange(has_failed_, true)) return;
  fprintf(stderr,
          "spillway: evicted memory stays in host memory, as its file does not take it: %s\n",
          status.text().c_str());
}

Range* Spilling::NextToReturn() {
  Range* next = nullptr;
  state_.residency.ForEachLive([&](Range* range) {
    if (range->spilled && (!next || range->last_touch > next->last_touch)) next = range;
  });
  return next;
}

bool Spilling::ReturnOne(base::FunctionRef<bool()> goes_on) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  Range* next = nullptr;
  {
    const StateLock lock(state_.locks);
    next = NextToReturn();
  }
  return next && Load(next, goes_on);
}

bool Spilling::Load(Range* range, base::FunctionRef<bool()> goes_on) {
  SpilledCopies::Load load;
  {
    const StateLock lock(state_.locks);
    if (!state_.residency.copies().spilled().Begin(range, &load)) return false;
  }
  if (load.id == 0) return true;
  const base::Status read = SpilledCopies::Read(load, goes_on);
  const StateLock lock(state_.locks);
  return state_.residency.copies().spilled().End(&load, read) != SpilledCopies::Loaded::kLost;
}

bool Spilling::HasPressure() {
  const size_t budget_bytes = state_.budget.bytes();
  return state_.counters.wanted_bytes > budget_bytes || state_.residency.parking() ||
         std::exchange(evictions_, state_.counters.evictions) != state_.counters.evictions;
}

void Spilling::ReleaseSpareCopies(std::uint64_t now_ns) {
  {
    const StateLock lock(state_.locks);
    const bool has_any =
        state_.residency.host().pinned_bytes() > 0 || state_.residency.host().ordinary_bytes() > 0;
    if (!has_any || HasPressure() || settled_ns_ == 0) settled_ns_ = now_ns;
    if (now_ns - settled_ns_ < kSettledNs) return;
    settled_ns_ = now_ns;
  }
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.host_grant.ExpectAllToLeave(false);
  state_.counters.spare_copies_released_bytes += state_.residency.ReleaseSpareCopies();
}

}  // namespace spillway::interposer
