#include "agent/arbiter/water_level.h"

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace spillway::agent {
namespace {

// At this level and above, the vessel is full.
int64_t FullLevel(const Vessel& vessel) { return vessel.takes / vessel.weight + 1; }

int64_t At(const Vessel& vessel, int64_t level) {
  if (level >= FullLevel(vessel)) return std::max(vessel.takes, vessel.has);
  return std::max(vessel.has, level * vessel.weight);
}

// The highest level that `amount` pays for, if not all are filled. Binary search: vessels whose
// cost is constant or linear over the remaining levels are summed up and left out.
int64_t LevelFor(int64_t amount, std::span<const Vessel> vessels) {
  struct Open {
    const Vessel* vessel;
    int64_t full_level;
  };
  int64_t level = 0, too_high = 1;
  std::vector<Open> open;
  open.reserve(vessels.size());
  for (const Vessel& vessel : vessels) {
    open.push_back({&vessel, FullLevel(vessel)});
    too_high = std::max(too_high, open.back().full_level + 1);
  }
  base::Wide fixed = 0, per_level = 0;
  while (too_high - level > 1 && !open.empty()) {
    const int64_t middle = level + (too_high - level) / 2;
    base::Wide cost = fixed + per_level * middle;
    for (const Open& one : open) {
      const Vessel& vessel = *one.vessel;
      const int64_t at = middle >= one.full_level ? std::max(vessel.takes, vessel.has)
                                                  : std::max(vessel.has, middle * vessel.weight);
      cost += at - vessel.has;
    }
    (cost <= amount ? level : too_high) = middle;
    std::erase_if(open, [&](const Open& one) {
      const Vessel& vessel = *one.vessel;
      const bool is_full = one.full_level <= level;
      const bool rises = one.full_level >= too_high && level * vessel.weight >= vessel.has;
      if (is_full) fixed += At(vessel, level) - vessel.has;
      if (rises) fixed -= vessel.has;
      if (rises) per_level += vessel.weight;
      return is_full || rises;
    });
  }
  if (too_high - level == 1) return level;
  const base::Wide paid = per_level > 0 ? (amount - fixed) / per_level : too_high;
  return static_cast<int64_t>(std::min<base::Wide>(paid, too_high - 1));
}

}  // namespace

int64_t Pour(int64_t amount, std::span<Vessel> vessels) {
  const auto raise = [&amount](Vessel& vessel, int64_t to) {
    const int64_t more = std::clamp<int64_t>(to - vessel.has, 0, amount);
    vessel.has += more;
    amount -= more;
  };
  if (amount <= 0) return amount;
  base::Wide whole = 0;
  for (const Vessel& vessel : vessels) whole += std::max<int64_t>(0, vessel.takes - vessel.has);
  if (whole <= amount) {
    for (Vessel& vessel : vessels) raise(vessel, vessel.takes);
    return amount;
  }
  const int64_t level = LevelFor(amount, vessels);
  std::vector<int64_t> one_higher;
  one_higher.reserve(vessels.size());
  for (const Vessel& vessel : vessels) one_higher.push_back(At(vessel, level + 1));
  for (Vessel& vessel : vessels) raise(vessel, At(vessel, level));
  for (size_t i = 0; i < vessels.size(); ++i) raise(vessels[i], one_higher[i]);
  return amount;
}

}  // namespace spillway::agent
