// What memory holds: copies tell, and launches reach what they can get to from there.
#include <algorithm>

#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/ledger/tensor_maps.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::interposer {

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
  if (!found) return stored_.ReadHostAt(word, set);
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
