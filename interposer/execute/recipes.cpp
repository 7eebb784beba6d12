#include "interposer/execute/recipes.h"

#include <algorithm>
#include <utility>

#include "interposer/execute/ordering_rules.h"

namespace spillway::interposer {
namespace {

void EndReading(Tracked* memory, const Recipe* recipe) {
  memory->readers.EraseIf([recipe](const Recipe* reader) { return reader == recipe; });
}

}  // namespace

Recipe* Recipes::Keep(std::unique_ptr<Recipe> recipe) {
  recipe->id = ++last_id_;
  recipe->output->recipe = recipe.get();
  if (ordering_rules::kRecipesCloseGates) recipe->output->gate.Close();
  for (Tracked* input : recipe->inputs) {
    input->readers.push_back(recipe.get());
    if (ordering_rules::kRecipesCloseGates) input->gate.Close();
  }
  recipes_.push_back(std::move(recipe));
  count_.store(recipes_.size(), std::memory_order_relaxed);
  return recipes_.back().get();
}

// Gates open with the next call that names the memory and takes the lock.
void Recipes::Forget(const Recipe* recipe) {
  const auto at = PlaceOf(recipe->id);
  recipe->output->recipe = nullptr;
  for (Tracked* input : recipe->inputs) EndReading(input, recipe);
  recipes_.erase(at);
  count_.store(recipes_.size(), std::memory_order_relaxed);
}

void Recipes::Exchange(Recipe* recipe, Tracked* from, Tracked* to) {
  std::replace(recipe->inputs.begin(), recipe->inputs.end(), from, to);
  EndReading(from, recipe);
  to->readers.push_back(recipe);
  to->gate.Close();
}

Recipes::Places::const_iterator Recipes::PlaceOf(std::uint64_t id) const {
  return std::lower_bound(recipes_.begin(), recipes_.end(), id,
                          [](const auto& known, std::uint64_t wanted) { return known->id < wanted; });
}

Recipe* Recipes::Find(std::uint64_t id) const {
  const auto at = PlaceOf(id);
  return at == recipes_.end() || (*at)->id != id ? nullptr : at->get();
}

Recipes::Ids Recipes::Of(const Tracked* memory) {
  Ids ids;
  const Recipe* const its_own = IsBlock(memory) ? nullptr : static_cast<const Range*>(memory)->recipe;
  if (its_own) ids.push_back(its_own->id);
  for (const Recipe* reader : memory->readers) ids.push_back(reader->id);
  return ids;
}

Recipes::Ids Recipes::All() const {
  Ids ids;
  for (const auto& recipe : recipes_) ids.push_back(recipe->id);
  return ids;
}

Recipes::Verdict Recipes::VerdictOn(std::uint64_t token) const {
  const auto at = verdicts_.find(token);
  return at == verdicts_.end() ? Verdict::kUnknown : at->second;
}

}  // namespace spillway::interposer
