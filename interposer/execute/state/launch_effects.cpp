#include "interposer/execute/state/launch_effects.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

constexpr unsigned kProvedForAll = 2;      // exact kinds that speak for the others
constexpr unsigned kMostTries = 4;         // of experiments that show nothing
constexpr std::size_t kMostTokens = 4096;  // a program that never repeats itself learns no more

}  // namespace

LaunchEffects::Effect* LaunchEffects::ForExperiment(const LaunchKind& kind) {
  if (Effect* const effect = Find(kind)) {
    const bool is_wanted = !effect->is_final && !effect->is_under_way && effect->tries < kMostTries;
    return is_wanted ? effect : nullptr;
  }
  if (tokens_.size() >= kMostTokens && !tokens_.contains(kind.token)) return nullptr;
  Token& token = tokens_[kind.token];
  const bool is_settled = token.is_distrusted || token.refuted > 0;
  if (is_settled || token.exact_kinds.size() >= kMostExactKinds) return nullptr;
  token.exact_kinds.push_back(kind.exact);
  return &effects_[kind.exact];
}

LaunchEffects::Effect* LaunchEffects::Find(const LaunchKind& kind) {
  const auto known = effects_.find(kind.exact);
  return known == effects_.end() ? nullptr : &known->second;
}

void LaunchEffects::Learned(const LaunchKind& kind) {
  Merge(&tokens_[kind.token]);
  count_.fetch_add(1, std::memory_order_relaxed);
}

// Where exact kinds differ, the memory counts as read and written.
void LaunchEffects::Merge(Token* token) const {
  token->proved = token->refuted = 0;
  token->merged = {};
  for (const std::uint64_t exact : token->exact_kinds) {
    const Effect& effect = effects_.at(exact);
    if (effect.stage == Stage::kUnseen) continue;
    token->proved += effect.stage == Stage::kProved;
    token->refuted += effect.is_final && effect.stage != Stage::kProved;
    if (token->merged.stage == Stage::kUnseen) {
      token->merged = effect;
      continue;
    }
    LearnedRoles& roles = token->merged.roles;
    roles.Truncate(std::min(roles.size(), effect.roles.size()));
    for (std::size_t i = 0; i < roles.size(); ++i) {
      if (effect.roles[i] != roles[i]) roles[i].role = Role::kReadsAndWrites;
    }
  }
}

const LaunchEffects::Effect* LaunchEffects::Expected(const LaunchKind& kind,
                                                     std::size_t named) const {
  const auto found = tokens_.find(kind.token);
  if (found == tokens_.end() || found->second.is_distrusted) return nullptr;
  const Token& token = found->second;
  const auto known = effects_.find(kind.exact);
  const bool is_known = known != effects_.end() && known->second.stage != Stage::kUnseen;
  const bool others_speak = token.proved >= kProvedForAll && token.refuted == 0;
  const Effect* const effect = is_known ? &known->second : others_speak ? &token.merged : nullptr;
  return effect && effect->roles.size() == named ? effect : nullptr;
}

LearnedRoles LaunchEffects::RangeRolesOf(std::uint64_t token) const {
  LearnedRoles roles;
  const auto found = tokens_.find(token);
  if (found == tokens_.end() || found->second.is_distrusted) return roles;
  for (const LearnedRole& role : found->second.merged.roles) {
    if (role.is_range) roles.push_back(role);
  }
  return roles;
}

bool LaunchEffects::IsProved(std::uint64_t token) const {
  const auto found = tokens_.find(token);
  return found != tokens_.end() && !found->second.is_distrusted && found->second.proved > 0 &&
         found->second.refuted == 0;
}

}  // namespace spillway::interposer
