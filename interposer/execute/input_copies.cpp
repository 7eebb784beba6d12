#include "interposer/execute/input_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

constexpr std::size_t kLeastGain = 4;  // dropped bytes per saved byte, at least
// Saved bytes stay on the device: at most this part of the budget, or a granule.
constexpr std::size_t kShare = 16;

}  // namespace

bool InputCopies::Save(SlabBlock* input) {
  SlabBlock* const copy = MemoryForCopy(input->requested_bytes);
  if (!copy) return false;
  const StateLock lock(state_.locks);
  const bool moved = !input->holds_addresses && MoveRecords(input, copy);
  if (!moved) frees_.GiveBack(copy, {});
  return moved;
}

// A block of the job's own. Null when there is no memory for it.
SlabBlock* InputCopies::MemoryForCopy(size_t bytes) {
  for (;;) {
    {
      const StateLock lock(state_.locks);
      if (frees_.saved_input_bytes() + bytes >
          std::max(kGranuleBytes, state_.budget.bytes() / kShare))
        return nullptr;
      if (!state_.slabs.NeedsSlab(bytes)) {
        SlabBlock* const block = state_.slabs.Take(bytes);
        block->is_ours = true;
        frees_.NoteSavedInput(bytes);
        return block;
      }
    }
    if (eviction_.AddSlabWhileMaking(bytes) != CUDA_SUCCESS) return nullptr;
  }
}

// A word that leads to the block may be the end of the memory before it.
bool InputCopies::MayEndBefore(const RecordedLaunch& launch, const SlabBlock& block) const {
  const Allocation* const before = state_.ledger.Find(block.base - 1);
  return before && launch.LeadsInto(before->base, block.base);
}

// Moves all records of the block or none. All make dropped ranges: the others have ended.
bool InputCopies::MoveRecords(SlabBlock* from, SlabBlock* to) {
  base::InlineVector<RecomputeRecord*, 8> records;
  std::vector<RecordedLaunch> launches;
  for (const std::uint64_t id : state_.recompute_records.Of(from)) {
    RecomputeRecord* const record = state_.recompute_records.Find(id);
    if (record->output->place != Place::kDropped) return false;
    if (record->output->size_bytes / kLeastGain < from->size_bytes) return false;
    launches.push_back(record->launch);
    if (MayEndBefore(launches.back(), *from)) return false;
    if (!launches.back().Move(from->base, from->base + from->size_bytes, to->base)) return false;
    records.push_back(record);
  }
  if (records.empty()) return false;  // another thread has freed their outputs
  StreamState* const stream = replays_.StreamForReplay(nullptr);
  state_.residency.OrderBehind(from, stream);
  state_.residency.OrderBehind(to, stream);
  for (const RecomputeRecord* record : records) state_.timeline.OrderAfter(stream, record->made_by);
  const size_t bytes = from->requested_bytes;
  if (Driver().cuMemcpyDtoDAsync_v2(to->base, from->base, bytes, stream->handle) != CUDA_SUCCESS)
    return false;
  const Use use = state_.timeline.Issue(stream);
  state_.timeline.EventFor(use);
  if (ordering_rules::kWritesFollowReplays) replays_.NoteReplay(from, use);
  replays_.NoteReplay(to, use);
  presumed_.Reset(to);
  for (size_t i = 0; i < records.size(); ++i) {
    records[i]->launch = std::move(launches[i]);
    state_.recompute_records.Exchange(records[i], from, to);
  }
  to->free_is_due = true;  // freed as soon as no record reads it
  if (from->free_is_due) frees_.GiveBack(from, state_.timeline.Unfinished());
  return true;
}

}  // namespace spillway::interposer
