#include "interposer/execute/call_memory.h"

#include <algorithm>

#include "interposer/execute/call_roles.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

void CallMemory::Find(const Addresses& addresses, Effect effect, TouchSet* set) {
  set->ranges.clear();
  set->blocks.clear();
  set->names_freed = false;
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.FindUsable(address);
    if (!found) {
      set->names_freed = set->names_freed || state_.residency.mappings().OwnsAddress(address);
    } else if (IsBlock(found)) {
      set->blocks.push_back(AsBlock(found));
      OrderBehind(AsBlock(found), *set);
      if (!set->recorded) OpenFastPath(AsBlock(found), set->stream);
    } else if (std::find(set->ranges.begin(), set->ranges.end(), found) == set->ranges.end()) {
      set->ranges.push_back(AsRange(found));
    }
  }
  set->named = set->ranges.size();
  set->reaches = false;
  set->reached_blocks.clear();
  Follow(addresses, effect, set);
  runs_.AddPieces(set);
  arenas_.AddParts(addresses, set);
  set->roles.clear();
  if (set->claims && !set->recorded) AssignRoles(addresses, set);
  set->must_park = false;
  if (set->host_is_unsure) {
    state_.pointer_safety.AwaitNewWork();
    set->must_park = state_.pointer_safety.MustPark() && !state_.residency.parking();
  }
  if (!ReachesTooMuch(*set)) return;
  if (!state_.residency.parking()) state_.pointer_safety.MarkUnsafe(UnsafeReason::kReachesTooMuch);
  if (!state_.pointer_safety.MustPark()) return;
  state_.pointer_safety.RequireFullScan();
  set->must_park = !state_.residency.parking();
  set->ranges.Truncate(set->named);
  runs_.AddPieces(set);
  arenas_.AddParts(addresses, set);
}

void CallMemory::Enter(TouchSet* set) {
  runs_.HoldAll(*set);
  for (Range* range : set->ranges) {
    state_.residency.Enter(range);
    OrderBehind(range, *set);
  }
  ++state_.calls.locked;
  if (set->recorded) return;
  for (SlabBlock* block : set->blocks) block->users.Note(set->stream);
  for (Tracked* block : set->reached_blocks) AsBlock(block)->users.Note(set->stream);
}

void CallMemory::Follow(const Addresses& addresses, Effect effect, TouchSet* set) {
  if (effect != Effect::kLaunches) return;
  if (state_.contents.empty() && state_.outside.empty() && set->held_on_host.empty()) return;
  std::vector<Tracked*> holders;
  for (CUdeviceptr address : addresses) {
    auto* const found = static_cast<Tracked*>(state_.ledger.Find(address));
    if (found && found->holds_addresses) holders.push_back(found);
  }
  // Work on other streams may run ahead of an overwrite. This call's stream is behind its own.
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

void CallMemory::Reach(CUdeviceptr word, TouchSet* set, std::vector<Tracked*>* holders) {
  auto* const found = static_cast<Tracked*>(state_.ledger.Find(word));
  if (!found) {
    for (const CUdeviceptr beside : state_.ledger.Beside(word)) {
      if (ordering_rules::kBesideIsFollowed) Reach(beside, set, holders);
    }
    return stored_.ReadHostAt(word, set);
  }
  set->reaches = true;
  found->is_fresh = false;
  if (IsBlock(found)) {
    OrderBehind(AsBlock(found), *set);
    set->reached_blocks.push_back(found);
  } else if (std::find(set->ranges.begin(), set->ranges.end(), found) == set->ranges.end()) {
    set->ranges.push_back(AsRange(found));
  }
  const bool leads_on = found->holds_addresses &&
                        std::find(holders->begin(), holders->end(), found) == holders->end();
  if (leads_on) holders->push_back(found);
}

// Memory that a call reaches but does not name is made resident while that leaves room for others.
// Runs leave none anyway.
bool CallMemory::ReachesTooMuch(const TouchSet& set) const {
  size_t bytes = 0;
  bool reaches = false;
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    const Range* const range = set.ranges[i];
    if (range->run_piece != RunPiece::kNone) continue;
    bytes += range->size_bytes;
    reaches = reaches || i >= set.named;
  }
  return reaches && bytes > state_.budget.bytes() / 2;
}

// The stream is already ordered behind all that the block's users must wait for.
void CallMemory::OpenFastPath(SlabBlock* block, StreamState* stream) {
  if (block->holds_addresses || block->is_fresh || !block->readers.empty()) return;
  block->ready_after.empty() ? block->fast_path.OpenForAll()
                             : block->fast_path.OpenFor(Timeline::SerialOf(stream));
}

void CallMemory::OrderBehind(Tracked* memory, const TouchSet& set) {
  if (!set.recorded) state_.residency.OrderBehind(memory, set.stream);
}

}  // namespace spillway::interposer
