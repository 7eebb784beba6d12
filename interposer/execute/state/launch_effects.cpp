#include "interposer/execute/state/launch_effects.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

constexpr unsigned kProvedForAll = 2;        // exact kinds that speak for the others
constexpr unsigned kMostTries = 4;           // of experiments that show nothing
constexpr std::size_t kMostFamilies = 4096;  // a program that never repeats itself learns no more

}  // namespace

LaunchEffects::Effect* LaunchEffects::ForExperiment(const LaunchKind& kind) {
  if (Effect* const effect = Find(kind)) {
    const bool is_wanted = !effect->is_final && !effect->is_under_way && effect->tries < kMostTries;
    return is_wanted ? effect : nullptr;
  }
  if (families_.size() >= kMostFamilies && !families_.contains(kind.family)) return nullptr;
  const auto [at, is_new] = families_.try_emplace(kind.family);
  Family& family = at->second;
  if (is_new) families_of_.emplace(family.token = kind.token, kind.family);
  if (family.refuted > 0 || family.exact_kinds.size() >= kMostExactKinds) return nullptr;
  family.exact_kinds.push_back(kind.exact);
  return &effects_[kind.exact];
}

LaunchEffects::Effect* LaunchEffects::Find(const LaunchKind& kind) {
  const auto known = effects_.find(kind.exact);
  return known == effects_.end() ? nullptr : &known->second;
}

void LaunchEffects::Learned(const LaunchKind& kind) {
  Merge(&families_[kind.family]);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void LaunchEffects::Refute(std::uint64_t token) {
  const auto [begin, end] = families_of_.equal_range(token);
  for (auto at = begin; at != end; ++at) {
    Family& family = families_.at(at->second);
    family.is_refuted = true;
    Merge(&family);
  }
}

void LaunchEffects::Forget() {
  effects_.clear();
  families_.clear();
  families_of_.clear();
}

namespace {

// Where kinds differ, the memory counts as read and written.
void MergeRoles(const LearnedRoles& others, LearnedRoles* roles) {
  roles->Truncate(std::min(roles->size(), others.size()));
  for (std::size_t i = 0; i < roles->size(); ++i) {
    if (others[i] != (*roles)[i]) (*roles)[i].role = Role::kReadsAndWrites;
  }
}

}  // namespace

void LaunchEffects::Merge(Family* family) {
  family->proved = 0;
  family->refuted = family->is_refuted;
  family->merged = {};
  for (const std::uint64_t exact : family->exact_kinds) {
    Effect& effect = effects_.at(exact);
    if (effect.stage == Stage::kUnseen) continue;
    if (family->is_refuted) {
      effect.stage = Stage::kObserved;
      effect.is_final = true;
    }
    family->proved += effect.stage == Stage::kProved;
    family->refuted += effect.is_final && effect.stage != Stage::kProved;
    if (family->merged.stage == Stage::kUnseen)
      family->merged = effect;
    else
      MergeRoles(effect.roles, &family->merged.roles);
    family->merged.reads_constants |= effect.reads_constants;
  }
}

const LaunchEffects::Effect* LaunchEffects::Expected(const LaunchKind& kind,
                                                     std::size_t named) const {
  const auto found = families_.find(kind.family);
  if (found == families_.end()) return nullptr;
  const Family& family = found->second;
  const auto known = effects_.find(kind.exact);
  const bool is_known = known != effects_.end() && known->second.stage != Stage::kUnseen;
  const bool others_speak = family.proved >= kProvedForAll && family.refuted == 0;
  const Effect* const effect = is_known ? &known->second : others_speak ? &family.merged : nullptr;
  return effect && effect->roles.size() == named ? effect : nullptr;
}

template <class Visit>
void LaunchEffects::ForEachFamilyOf(std::uint64_t token, Visit visit) const {
  const auto [begin, end] = families_of_.equal_range(token);
  for (auto at = begin; at != end; ++at) visit(families_.at(at->second));
}

LearnedRoles LaunchEffects::RangeRolesOf(std::uint64_t token) const {
  LearnedRoles roles;
  bool is_first = true;
  ForEachFamilyOf(token, [&](const Family& family) {
    LearnedRoles of_family;
    for (const LearnedRole& role : family.merged.roles) {
      if (role.is_range) of_family.push_back(role);
    }
    is_first ? void(roles = of_family) : MergeRoles(of_family, &roles);
    is_first = false;
  });
  return roles;
}

bool LaunchEffects::IsProved(std::uint64_t token) const {
  bool any = false, all = true;
  ForEachFamilyOf(token, [&](const Family& family) {
    any = true;
    all = all && family.proved > 0 && family.refuted == 0;
  });
  return any && all;
}

}  // namespace spillway::interposer
