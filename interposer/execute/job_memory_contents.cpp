// What memory holds: copies tell, and launches reach what they can get to from there.
#include <algorithm>

#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/ledger/tensor_maps.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::interposer {

namespace {

// More addresses than these are not kept: the job counts as opaque.
constexpr size_t kMostHeld = size_t{1} << 17;

// Note [Words that lead nowhere yet]
// A copied word may name a place where something is allocated only later. Mostly it is a number, and the copy explains it
// when a census meets it. Or the program knows that its allocator gives the same place again: then kernels follow it. So
// it is kept like others, unless so many words are kept already that data as this would leave no room for addresses. Not in
// device variables: what those hold concerns every launch.
constexpr size_t kMostLeadingNowhere = size_t{1} << 12;

}  // namespace

void JobMemory::Wrote(const Transfers& transfers, const TouchSet& set) {
  if (set.recorded) return;
  const Overwrite by{set.use.stream, set.use.sequence};
  for (const Transfer& transfer : transfers) {
    for (size_t row = 0; row < transfer.rows; ++row) {
      WroteRow(transfer, transfer.to + row * transfer.to_pitch_bytes,
               transfer.from + row * transfer.from_pitch_bytes, by);
    }
  }
}

// Scanned without the lock. Most payloads hold nothing and overwrite nothing that does.
void JobMemory::WroteRow(const Transfer& transfer, CUdeviceptr to, CUdeviceptr from, Overwrite by) {
  const size_t bytes = transfer.width_bytes;
  std::vector<HeldWord> found;
  if (transfer.source == Transfer::Source::kHost && ordering_rules::kPayloadsAreScanned) {
    const auto* const payload = reinterpret_cast<const void*>(from);
    const auto keep = [&](const HeldWord& held) { found.push_back(held); };
    ScanPayload(payload, bytes, to, state_.Bounds(), keep);
    ForEachTensorMap(payload, bytes, -to % kTensorMapAlignment, [&](size_t offset, CUdeviceptr address) {
      keep({to + offset, address});
    });
    ScanPayload(payload, bytes, to, HostRegions::Bounds(), [&](const HeldWord& held) {
      if (!HostRegions::Instance().Holds(held.word)) return;
      VisibleWork::ShowEverything();
      keep(held);
    });
  }
  const StateLock lock(state_.locks);
  if (found.empty() && state_.contents.empty() && state_.outside.empty()) return;
  Contents& contents = ContentsAt(to);
  if (transfer.source == Transfer::Source::kDevice && ordering_rules::kCopiesBringAddresses) {
    contents.Copy(to, ContentsAt(from), from, bytes, by);
  } else {
    contents.Erase(to, bytes, by);
  }
  PutAll(to, bytes, found);
}

void JobMemory::PutAll(CUdeviceptr to, size_t bytes, const std::vector<HeldWord>& found) {
  Contents& contents = ContentsAt(to);
  for (const HeldWord& held : found) {
    const size_t kept = state_.contents.size() + state_.outside.size();
    const bool leads_to_host = HostRegions::Instance().BaseOf(held.word) != 0;
    const bool is_followed = &contents == &state_.contents || IsInGlobal(held.at);
    const bool leads_nowhere = !state_.ledger.Find(held.word) && !(leads_to_host && is_followed);
    if (leads_nowhere && (&contents == &state_.outside || kept >= kMostLeadingNowhere)) continue;
    if (kept >= kMostHeld) {
      state_.trust.Opaque(Opacity::kTooManyAddresses);
      break;
    }
    contents.Put(held);
  }
  if (!contents.HoldsAny(to, bytes)) return;
  Allocation* const holder = state_.ledger.Find(to);
  if (!holder) return state_.all_memory.Update();
  auto* const tracked = static_cast<Tracked*>(holder);
  tracked->holds_addresses = true;
  tracked->gate.Close();
}

Contents& JobMemory::ContentsAt(CUdeviceptr address) {
  return state_.ledger.Find(address) ? state_.contents : state_.outside;
}

bool JobMemory::IsInGlobal(CUdeviceptr address) const {
  return std::any_of(globals_.begin(), globals_.end(),
                     [address](const Global& global) { return address - global.base < global.bytes; });
}

// A launch reaches what the named memory and the device variables hold, and what that holds. A copy does not.
void JobMemory::Follow(const Addresses& addresses, Effect effect, TouchSet* set) {
  if (effect != Effect::kLaunches) return;
  if (state_.contents.empty() && state_.outside.empty() && set->held_on_host.empty()) return;
  std::vector<Tracked*> holders;
  for (CUdeviceptr address : addresses) {
    auto* const found = static_cast<Tracked*>(state_.ledger.Find(address));
    if (found && found->holds_addresses) holders.push_back(found);
  }
  // Work on other streams may be ahead of an overwrite; this call's stream is behind its own.
  const auto is_over = [&](Overwrite by) {
    return !by.stream ||
           state_.timeline.Done(
               {const_cast<StreamState*>(static_cast<const StreamState*>(by.stream)), by.sequence});
  };
  std::vector<CUdeviceptr> words;
  const auto collect = [&](CUdeviceptr word, Overwrite by) {
    if (by.stream != set->stream || !by.stream) words.push_back(word);
  };
  state_.outside.ForAll(is_over, collect);
  for (CUdeviceptr word : words) Reach(word, set, &holders);
  for (size_t i = 0, on_host = 0; i < holders.size() || on_host < set->held_on_host.size();) {
    if (on_host < set->held_on_host.size()) {
      Reach(CUdeviceptr{set->held_on_host[on_host++].word}, set, &holders);
      continue;
    }
    Tracked* const holder = holders[i++];
    words.clear();
    state_.contents.ForEach(holder->base, holder->size_bytes, is_over, collect);
    holder->holds_addresses = state_.contents.HoldsAny(holder->base, holder->size_bytes);
    for (CUdeviceptr word : words) Reach(word, set, &holders);
  }
}

void JobMemory::Reach(CUdeviceptr word, TouchSet* set, std::vector<Tracked*>* holders) {
  auto* const found = static_cast<Tracked*>(state_.ledger.Find(word));
  if (!found) return ReadHostAt(word, set);
  set->reaches = true;
  if (IsBlock(found)) {
    OrderBehind(AsBlock(found), *set);
    set->reached_blocks.push_back(found);
  } else if (std::find(set->ranges.begin(), set->ranges.end(), found) == set->ranges.end()) {
    set->ranges.push_back(AsRange(found));
  }
  const bool leads_on =
      found->holds_addresses && std::find(holders->begin(), holders->end(), found) == holders->end();
  if (leads_on) holders->push_back(found);
}

// What a call may reach besides what it names is brought as long as that leaves room for others.
bool JobMemory::ReachesTooMuch(const TouchSet& set) const {
  size_t bytes = 0;
  for (const Range* range : set.ranges) bytes += range->size_bytes;
  return set.ranges.size() > set.named && bytes > state_.budget.bytes() / 2;
}

}  // namespace spillway::interposer
