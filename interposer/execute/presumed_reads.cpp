#include "interposer/execute/presumed_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::interposer {

namespace {

constexpr ContentChecks::Slot kNoPrint = PresumedUse::kNoPrint;
static_assert(kNoPrint == ContentChecks::kNoSlot);

bool HasRecord(const Tracked* memory) { return !RecomputeRecords::Of(memory).empty(); }

// What it holds is nowhere but in the record, or soon will be.
bool IsGone(const Range* output) { return IsDropped(output) || output->drops; }

}  // namespace

bool PresumedReads::MayPresume(const Tracked* memory) const {
  const auto ids = RecomputeRecords::Of(memory);
  return ids.empty() ||
         (state_.residency.checks().IsReady() &&
          std::none_of(ids.begin(), ids.end(), [&](std::uint64_t id) SPILLWAY_REQUIRES(kStateLock) {
            const RecomputeRecord* const record = state_.recompute_records.Find(id);
            return record && IsGone(record->output);
          }));
}

void PresumedReads::Enter(const Addresses& addresses, TouchSet* set) {
  if (!set->learned || set->recorded || state_.recompute_records.empty()) return;
  Memory memory;
  for (const CUdeviceptr address : addresses) {
    auto* const found = static_cast<Tracked*>(state_.FindUsable(address));
    const bool is_read =
        found && set->claims->RoleOf(*found, {addresses.begin(), addresses.size()}) == Role::kReads;
    if (is_read && HasRecord(found) &&
        std::find(memory.begin(), memory.end(), found) == memory.end())
      memory.push_back(found);
  }
  Take(memory, set);
}

void PresumedReads::EnterOwn(const RecomputeRecord& record, TouchSet* set) {
  Memory memory;
  for (Tracked* input : record.inputs) memory.push_back(input);
  Take(memory, set);
}

void PresumedReads::Leave(TouchSet* set) {
  for (Tracked* memory : set->presumed) {
    --memory->presumed.in_progress;
    if (set->use.stream) memory->presumed.used.Add(set->use);
  }
  set->presumed.clear();
}

// Without a fingerprint nobody could tell later whether it was a read.
void PresumedReads::Take(const Memory& memory, TouchSet* set) {
  const bool has_all = TakeAll(memory, set->stream);
  for (Tracked* each : memory) {
    if (!has_all) frees_.EndRecordsOf(each);
    ++each->presumed.in_progress;
    set->presumed.push_back(each);
  }
}

// The call may yet be withdrawn: the fingerprints' work has a use of its own.
bool PresumedReads::TakeAll(const Memory& memory, StreamState* stream) {
  ContentChecks& checks = state_.residency.checks();
  std::vector<Fingerprints::Piece> pieces;
  Memory taken;
  bool has_all = true;
  for (Tracked* each : memory) {
    if (each->presumed.print != kNoPrint) continue;
    const ContentChecks::Slot slot = checks.TakeSlot();
    has_all = has_all && slot != kNoPrint;
    if (slot == kNoPrint) continue;
    each->presumed.print = slot;
    pieces.push_back({each->base, each->requested_bytes, slot});
    taken.push_back(each);
  }
  if (pieces.empty()) return has_all;
  has_all = checks.Take(stream->handle, pieces) && has_all;
  const Use use = state_.timeline.Issue(stream);
  state_.timeline.EventFor(use);
  for (Tracked* each : taken) each->presumed.used.Add(use);
  return has_all;
}

void PresumedReads::Begin(const RecomputeRecord& record) {
  if (!HasRecord(record.output)) Reset(record.output);
  for (Tracked* input : record.inputs) {
    if (!HasRecord(input)) Reset(input);
  }
}

void PresumedReads::Reset(Tracked* memory) {
  const ContentChecks::Slot print = std::exchange(memory->presumed.print, kNoPrint);
  const ContentChecks::Slot latest = std::exchange(memory->presumed.latest, kNoPrint);
  state_.residency.checks().GiveLater(print, std::exchange(memory->presumed.used, {}));
  state_.residency.checks().GiveLater(latest, std::exchange(memory->presumed.taken, {}));
}

void PresumedReads::Taken(Tracked* memory, ContentChecks::Slot slot, Use use) {
  ContentChecks& checks = state_.residency.checks();
  PresumedUse& presumed = memory->presumed;
  checks.Share(slot);
  checks.GiveLater(std::exchange(presumed.latest, slot), std::exchange(presumed.taken, use));
  presumed.taken_at = Launched();
}

// Since the latest fingerprint. What calls document ends the memory's records where it writes.
bool PresumedReads::MayHaveChanged(const Tracked& memory) const {
  return memory.presumed.latest == kNoPrint || memory.presumed.taken_at != Launched();
}

// Grows with each launch of which only experiments say what it does.
std::uint64_t PresumedReads::Launched() const {
  return state_.timeline.UndocumentedBegun() + state_.counters.checked_recomputes;
}

bool PresumedReads::Compare(RecomputeRecord* record) {
  if (record->output->presumed.in_progress > 0) return false;
  if (record->is_checked && record->output->presumed.print != kNoPrint)
    record->compared.push_back({record->print, record->output->presumed.print});
  else if (!CompareOne(record->output, record))
    return false;
  return std::all_of(record->inputs.begin(), record->inputs.end(),
                     [&](Tracked* input)
                         SPILLWAY_REQUIRES(kStateLock) { return CompareOne(input, record); });
}

// An input that is dropped itself was compared then. Of one on the host the fingerprint is known.
bool PresumedReads::CompareOne(Tracked* memory, RecomputeRecord* record) {
  ContentChecks& checks = state_.residency.checks();
  const PresumedUse& presumed = memory->presumed;
  if (presumed.in_progress > 0) return false;
  if (presumed.print == kNoPrint) return true;
  const Range* const range = IsBlock(memory) ? nullptr : AsRange(memory);
  if (range && IsDropped(range)) return true;
  if (range && range->place == Place::kHost)
    return range->print_is_valid && checks.Read(range->print) == checks.Read(presumed.print);
  if (range && (!IsMapped(range) || range->empty)) return false;
  if (!MayHaveChanged(*memory)) {
    checks.Share(presumed.latest);
    record->compared.push_back({presumed.latest, presumed.print});
    record->output->departure.Add(presumed.taken);
    return true;
  }
  const ContentChecks::Slot now = checks.TakeSlot();
  if (now == ContentChecks::kNoSlot) return false;
  record->compared.push_back({now, presumed.print});
  return TakeNow(memory, now, record);
}

bool PresumedReads::TakeNow(Tracked* memory, ContentChecks::Slot to, RecomputeRecord* record) {
  ContentChecks& checks = state_.residency.checks();
  const Use use = IsBlock(memory) ? checks.TakeBehindAll(memory->base, memory->requested_bytes, to)
                                  : checks.Take(*AsRange(memory), to);
  if (!use.stream) return false;
  record->output->departure.Add(use);
  memory->presumed.used.Add(use);
  Taken(memory, to, use);
  if (IsBlock(memory)) return true;
  Range* const range = AsRange(memory);
  (range->place == Place::kLeaving ? range->departure : range->uses).Add(use);
  return true;
}

}  // namespace spillway::interposer
