#include "interposer/execute/arenas.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {
namespace {

constexpr size_t kLargestPartBytes = 32 * kMiB;  // the link takes ten times as long as the mapping
constexpr size_t kPartsInBudget = 64;

}  // namespace

// A budget that is small for a moment cuts nothing: an arena parks the job for good. Without a
// mappable host copy, guesses would be fatal.
bool Arenas::MustCut(size_t size_bytes) const {
  return size_bytes > state_.budget.largest_bytes() && !state_.budget.IsHeld() &&
         state_.pointer_safety.MayPark() && state_.residency.host().mappable();
}

size_t Arenas::PartBytes() const {
  const size_t bytes = state_.budget.bytes() / kPartsInBudget / kGranuleBytes * kGranuleBytes;
  return std::clamp(bytes, kGranuleBytes, kLargestPartBytes);
}

Arena* Arenas::Add(CUdeviceptr base, size_t bytes, size_t part_bytes) {
  state_.pointer_safety.MarkUnsafe(UnsafeReason::kArena);
  return arenas_.emplace_back(std::make_unique<Arena>(base, bytes, part_bytes)).get();
}

void Arenas::Cut(Arena* arena, std::vector<Range*> parts) {
  for (Range* part : parts) {
    part->arena = arena;
    part->fast_path.Close();
  }
  arena->parts = std::move(parts);
}

void Arenas::Remove(const Arena* arena) {
  for (Range* part : arena->parts) part->arena = nullptr;
  std::erase_if(arenas_, [arena](const auto& each) { return each.get() == arena; });
}

void Arenas::AddParts(const Addresses& addresses, TouchSet* set) {
  if (arenas_.empty()) return;
  ++searches_;
  const bool is_first = std::exchange(set->cuts_arenas, false);
  for (const CUdeviceptr address : addresses) {
    Arena* const arena = ArenaAt(address);
    if (!arena) continue;
    if (is_first) arena->cuts.Note(address);
    if (!IsClaimed(address, *set)) AddPartsOf(*arena, address, arena->cuts.EndOf(address), set);
  }
  if (!set->claims) return;
  for (const Claims::Claim& claim : set->claims->all()) {
    if (const Arena* const arena = ArenaAt(claim.begin))
      AddPartsOf(*arena, claim.begin, claim.end, set);
  }
}

Arena* Arenas::ArenaAt(CUdeviceptr address) { return ArenaOf(state_.FindUsable(address)); }

// A document says how far the memory behind the address reaches.
bool Arenas::IsClaimed(CUdeviceptr address, const TouchSet& set) {
  if (!set.claims || set.learned) return false;
  const auto claims = set.claims->all();
  return std::any_of(claims.begin(), claims.end(), [address](const Claims::Claim& claim) {
    return claim.kind != Claims::Kind::kTouches && claim.holds(address);
  });
}

void Arenas::AddPartsOf(const Arena& arena, CUdeviceptr begin, CUdeviceptr end, TouchSet* set) {
  const size_t last = arena.cuts.PartOf(std::min(end, arena.base + arena.requested_bytes) - 1);
  for (size_t i = arena.cuts.PartOf(begin); i <= last; ++i) {
    Range* const part = arena.parts[i];
    if (std::exchange(part->found_by, searches_) == searches_) continue;
    const auto named_end = set->ranges.begin() + set->named;
    if (std::find(set->ranges.begin(), named_end, part) == named_end) set->ranges.push_back(part);
  }
}

}  // namespace spillway::interposer
