#include "interposer/execute/recipes.h"

#include <algorithm>
#include <utility>

#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {

Recipe* Recipes::Keep(std::unique_ptr<Recipe> recipe) {
  recipe->id = ++last_id_;
  recipe->output->recipe = recipe.get();
  if (ordering_rules::kRecipesCloseGates) recipe->output->gate.Close();
  for (Tracked* input : recipe->inputs) {
    ++input->serves;
    if (ordering_rules::kRecipesCloseGates) input->gate.Close();
  }
  recipes_.push_back(std::move(recipe));
  count_.store(recipes_.size(), std::memory_order_relaxed);
  return recipes_.back().get();
}

// Gates open with the next call that names the memory and takes the lock.
void Recipes::Forget(const Recipe* recipe) {
  const auto at = std::find_if(recipes_.begin(), recipes_.end(),
                               [recipe](const auto& known) { return known.get() == recipe; });
  if (at == recipes_.end()) return;
  recipe->output->recipe = nullptr;
  for (Tracked* input : recipe->inputs) --input->serves;
  std::swap(*at, recipes_.back());
  recipes_.pop_back();
  count_.store(recipes_.size(), std::memory_order_relaxed);
}

void Recipes::Exchange(Recipe* recipe, Tracked* from, Tracked* to) {
  std::replace(recipe->inputs.begin(), recipe->inputs.end(), from, to);
  --from->serves;
  ++to->serves;
  to->gate.Close();
}

Recipe* Recipes::Find(std::uint64_t id) const {
  const auto at =
      std::find_if(recipes_.begin(), recipes_.end(), [id](const auto& known) { return known->id == id; });
  return at == recipes_.end() ? nullptr : at->get();
}

Recipes::Ids Recipes::Of(const Tracked* memory) const {
  Ids ids;
  if (!Concerns(*memory)) return ids;
  for (const auto& recipe : recipes_) {
    if (Names(*recipe, memory)) ids.push_back(recipe->id);
  }
  return ids;
}

Recipes::Ids Recipes::All() const {
  Ids ids;
  for (const auto& recipe : recipes_) ids.push_back(recipe->id);
  return ids;
}

bool Recipes::Names(const Recipe& recipe, const Tracked* memory) {
  return recipe.output == memory ||
         std::find(recipe.inputs.begin(), recipe.inputs.end(), memory) != recipe.inputs.end();
}

bool Recipes::Concerns(const Tracked& memory) {
  if (memory.serves > 0) return true;
  return memory.kind == AllocationKind::kRange && static_cast<const Range&>(memory).recipe;
}

Recipes::Verdict Recipes::VerdictOn(std::uint64_t token) const {
  const auto at = verdicts_.find(token);
  return at == verdicts_.end() ? Verdict::kUnknown : at->second;
}

}  // namespace spillway::interposer
