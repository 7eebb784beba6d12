#include "interposer/execute/residency/content_checks.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/recompute_record.h"

namespace spillway::interposer {

using driver::Driver;

// The stream is made at once: streams are numbered in the order in which they are first seen.
ContentChecks::ContentChecks(Timeline* timeline, Counters* counters)
    : timeline_(timeline), counters_(counters) {
  CUstream stream = nullptr;
  Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  stream_ = timeline_->Of({stream, false});
  stream_->is_ours = true;
}

bool ContentChecks::Prepare(CUdeviceptr base, Chunks chunks) {
  was_tried_ = true;
  base_ = base;
  chunks_ = std::move(chunks);
  return base && prints_.Prepare(base, kGranuleBytes);
}

void ContentChecks::Share(Slot slot) {
  if (slot >= more_owners_.size()) more_owners_.resize(slot + 1);
  ++more_owners_[slot];
}

// Slots are read by the host, and written by the work of their first owner: none of the others has
// work of its own on them.
void ContentChecks::GiveLater(Slot slot, const UseList& uses) {
  const bool is_shared = slot < more_owners_.size() && more_owners_[slot] > 0;
  if (is_shared) {
    --more_owners_[slot];
  } else if (slot != kNoSlot) {
    given_.emplace_back(slot, uses);
  }
  GiveDone();
}

void ContentChecks::GiveLater(Slot slot, Use use) {
  UseList uses;
  if (use.stream) uses.Add(use);
  GiveLater(slot, uses);
}

void ContentChecks::GiveDone() {
  std::erase_if(given_, [this](std::pair<Slot, UseList>& given) {
    const bool is_done = Timeline::AllKnownDone(&given.second);
    if (is_done) prints_.GiveSlot(given.first);
    return is_done;
  });
}

bool ContentChecks::Take(CUstream stream, std::span<const Fingerprints::Piece> pieces) {
  std::size_t bytes = 0;
  for (const Fingerprints::Piece& piece : pieces) bytes += piece.bytes;
  counters_->fingerprinted_bytes += bytes;
  clock_.Begin(stream, bytes);
  const bool is_made = prints_.Compute(stream, pieces);
  clock_.End(stream);
  return is_made;
}

Use ContentChecks::Take(const Range& range, Slot to) {
  for (const Use use : range.ready_after.items()) timeline_->OrderAfter(stream_, use);
  for (const Use use : range.uses.items()) timeline_->OrderAfter(stream_, use);
  return TakeOnOwnStream(range.base, range.requested_bytes, to);
}

Use ContentChecks::TakeBehindAll(CUdeviceptr begin, std::size_t bytes, Slot to) {
  const UseList unfinished = timeline_->Unfinished();
  for (const Use use : unfinished.items()) timeline_->OrderAfter(stream_, use);
  return TakeOnOwnStream(begin, bytes, to);
}

Use ContentChecks::TakeOnOwnStream(CUdeviceptr begin, std::size_t bytes, Slot to) {
  const Fingerprints::Piece piece{begin, bytes, to};
  if (!Take(stream_->handle, {&piece, 1})) return {};
  const Use use = timeline_->Issue(stream_);
  timeline_->EventFor(use);
  return use;
}

void ContentChecks::NoteCopied(Range* range) {
  range->print_is_valid = false;
  if (!IsReady() || timeline_->UndocumentedBegun() == 0) return;
  if (range->print == Range::kNoPrint) range->print = TakeSlot();
  if (range->print == Range::kNoPrint) return;
  const Use use = Take(*range, range->print);
  range->print_is_valid = use.stream != nullptr;
  if (use.stream) range->departure.Add(use);
}

bool ContentChecks::BeginCompare(Range* range) {
  if (!IsReady() || !range->print_is_valid) return false;
  const Slot slot = TakeSlot();
  if (slot == kNoSlot) return false;
  const Use use = Take(*range, slot);
  if (!use.stream) {
    prints_.GiveSlot(slot);
    return false;
  }
  range->content_print = slot;
  range->departure.Add(use);
  return true;
}

bool ContentChecks::IsUnchanged(Range* range) {
  const bool is_unchanged = Read(range->content_print) == Read(range->print);
  Forget(range);
  return is_unchanged;
}

void ContentChecks::Forget(Range* range) {
  GiveLater(std::exchange(range->content_print, Range::kNoPrint),
            {stream_, Timeline::IssuedOn(stream_)});
}

bool ContentChecks::AllEqual(const RecomputeRecord& record) const {
  const auto& all = record.compared;
  return std::all_of(all.begin(), all.end(), [&](RecomputeRecord::Compared each) {
    return Read(each.now) == Read(each.before);
  });
}

void ContentChecks::EndComparisons(RecomputeRecord* record) {
  for (const RecomputeRecord::Compared each : record->compared) {
    if (each.now != record->print) GiveLater(each.now, {stream_, Timeline::IssuedOn(stream_)});
  }
  record->compared.clear();
}

Chunks ContentChecks::TakeMemory(CUdeviceptr* base) {
  if (IsReady()) prints_.Release();
  clock_.Release();
  *base = std::exchange(base_, 0);
  return std::move(chunks_);
}

}  // namespace spillway::interposer
