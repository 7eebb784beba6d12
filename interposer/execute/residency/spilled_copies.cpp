#include "interposer/execute/residency/spilled_copies.h"

#include <cstdio>
#include <cstring>
#include <utility>

namespace spillway::interposer {
namespace {

constexpr int kReadAttempts = 3;
constexpr char kStopped[] = "the read was stopped";

bool HasCopyToStore(const Range& range) {
  return range.place == Place::kHost && range.host.data && range.pins == 0 && range.holds == 0 &&
         range.live && !range.serves_parked && range.host.bytes >= range.size_bytes;
}

}  // namespace

bool SpilledCopies::Begin(Range* range, const std::shared_ptr<SpillFile>& file, Store* out) {
  if (!HasCopyToStore(*range) || !pool_.IsIdle(&range->host)) return false;
  if (!file->Take(range->requested_bytes, &out->blocks)) return false;
  out->range = range;
  out->file = file;
  out->claim = range->spill_claim = ++last_id_;
  return true;
}

bool SpilledCopies::CopyBlock(const Store& store, size_t index, std::byte* to) const {
  const Range& range = *store.range;
  if (range.spill_claim != store.claim || !HasCopyToStore(range)) return false;
  const auto* const bytes = static_cast<const std::byte*>(range.host.data);
  std::memcpy(to, bytes + index * SpillFile::kBlockBytes, SpillFile::kBlockBytes);
  return true;
}

bool SpilledCopies::End(Store* store, bool is_written) {
  Range* const range = store->range;
  const bool is_valid = range->spill_claim == store->claim && HasCopyToStore(*range);
  if (range->spill_claim == store->claim) range->spill_claim = 0;
  if (!is_written || !is_valid) {
    store->file->Give(store->blocks);
    return false;
  }
  stored_bytes_ += range->size_bytes;
  pool_.NoteSpilled(stored_bytes_);
  range->spilled = std::make_unique<SpilledBytes>(
      SpilledBytes{std::move(store->file), std::move(store->blocks), ++last_id_});
  pool_.Release(&range->host);
  return true;
}

bool SpilledCopies::Begin(Range* range, Load* out) {
  if (!range->spilled) return true;
  if (!pool_.TakeIdle(range->size_bytes, &out->buffer) &&
      !pool_.TakeOrdinary(range->size_bytes, &out->buffer))
    return false;
  out->range = range;
  out->id = range->spilled->id;
  out->file = range->spilled->file;
  out->blocks = range->spilled->blocks;
  return true;
}

base::Status SpilledCopies::Read(const Load& load, base::FunctionRef<bool()> goes_on) {
  auto* to = static_cast<std::byte*>(load.buffer.data);
  for (const SpilledBlock& block : load.blocks) {
    if (!goes_on()) return base::Error{kStopped};
    base::Status status = load.file->Read(block, to);
    for (int attempt = 1; !status.ok() && attempt < kReadAttempts; ++attempt)
      status = load.file->Read(block, to);
    if (!status.ok()) return status;
    to += SpillFile::kBlockBytes;
  }
  return base::Ok();
}

SpilledCopies::Loaded SpilledCopies::End(Load* load, const base::Status& read) {
  Range* const range = load->range;
  const bool is_wanted = range->spilled && range->spilled->id == load->id;
  if (is_wanted && read.ok()) {
    counters_.spill_read_bytes += load->blocks.size() * SpillFile::kBlockBytes;
    Drop(range);
    range->host = std::move(load->buffer);
    return Loaded::kYes;
  }
  pool_.Give(&load->buffer);
  if (!is_wanted || read.error().what == kStopped) return Loaded::kInVain;
  NoteLoss(read);
  return Loaded::kLost;
}

void SpilledCopies::NoteLoss(const base::Status& read) {
  ++counters_.spill_failures;
  if (is_lost_.exchange(true)) return;
  fprintf(stderr,
          "spillway: evicted memory is lost, as its file does not give it back: %s. No wrong byte "
          "has reached the program, but it cannot go on: from now on its calls fail.\n",
          read.text().c_str());
}

bool SpilledCopies::LoadNow(Range* range) {
  Load load;
  if (!Begin(range, &load)) return false;
  return load.id == 0 || End(&load, Read(load, [] { return true; })) == Loaded::kYes;
}

void SpilledCopies::Drop(Range* range) {
  range->spill_claim = 0;
  if (!range->spilled) return;
  range->spilled->file->Give(range->spilled->blocks);
  range->spilled.reset();
  stored_bytes_ -= range->size_bytes;
  pool_.NoteSpilled(stored_bytes_);
}

}  // namespace spillway::interposer
