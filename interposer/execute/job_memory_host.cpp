// Memory of the host's that launches reach: it is looked through for addresses before the launch, and after that of a new kernel.
// See Note [Addresses in memory of the host's] in ledger/host_regions.h.
#include <algorithm>

#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

// What the launch names. What it reaches from there on is looked through as it is followed.
void JobMemory::ReadHost(TouchSet* set) const {
  set->held_on_host.clear();
  set->host_bases.clear();
  set->host_is_unsure = false;
  if (!set->host_words) return;
  for (const CUdeviceptr word : *set->host_words) ReadHostAt(word, set);
}

void JobMemory::ReadHostAt(CUdeviceptr word, TouchSet* set) const {
  if (!ordering_rules::kHostMemoryIsRead || !set->reads_host) return;
  const CUdeviceptr base = HostRegions::Instance().BaseOf(word);
  const bool is_known =
      std::find(set->host_bases.begin(), set->host_bases.end(), base) != set->host_bases.end();
  if (!base || is_known) return;
  set->host_bases.push_back(base);
  const HostRegions::Scan scan = HostRegions::Instance().Read(base, state_.Bounds());
  set->held_on_host.insert(set->held_on_host.end(), scan.held.begin(), scan.held.end());
  set->host_is_unsure = set->host_is_unsure || !scan.is_whole;
  for (const CUdeviceptr next : scan.leads_on) ReadHostAt(next, set);
}

// A new kernel has run: what was not there before it has written, unless the program did so meanwhile.
bool JobMemory::FoundNewOnHost(const TouchSet& set) const {
  TouchSet now;
  now.reads_host = set.reads_host;
  for (const CUdeviceptr base : set.host_bases) ReadHostAt(base, &now);
  return std::any_of(now.held_on_host.begin(), now.held_on_host.end(), [&](const HeldWord& held) {
    return std::none_of(set.held_on_host.begin(), set.held_on_host.end(), [&](const HeldWord& before) {
      return before.at == held.at && before.word == held.word;
    });
  });
}

// Somebody who follows the word comes to memory of the host's, and from there to ours.
bool JobMemory::LeadsToHeldWords(CUdeviceptr word) const {
  TouchSet reach;
  reach.reads_host = true;
  ReadHostAt(word, &reach);
  return !reach.held_on_host.empty();
}

void JobMemory::ForgetHost(CUdeviceptr base, size_t bytes) {
  const StateLock lock(state_.locks);
  if (state_.outside.empty()) return;
  state_.outside.Forget(base, bytes);
  state_.all_memory.Update();
}

}  // namespace spillway::interposer
