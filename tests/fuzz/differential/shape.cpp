#include "tests/fuzz/differential/shape.h"

#include <algorithm>

#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/random.h"

namespace spillway::fuzz {

Shape ShapeOf(std::uint64_t seed) {
  Random dice(seed ^ 0x5ba9e0f5eed5ull);
  Shape shape;
  if (dice.Percent(25)) shape.hosts = static_cast<int>(dice.Between(2, kMaximumThreads));
  if (dice.Percent(15)) {
    shape.contexts = kMaximumContexts;
    shape.hosts = std::min(shape.hosts, kMaximumThreads / kMaximumContexts);
  }
  if (dice.Percent(40)) return shape;
  const auto is_drawn = [](const Feature* feature) { return feature->IsDrawn(); };
  const auto count = static_cast<std::uint64_t>(
      std::count_if(AllFeatures().begin(), AllFeatures().end(), is_drawn));
  for (std::uint64_t i = dice.Between(1, 3); i > 0 && count != 0; --i)
    shape.features.insert(static_cast<int>(dice.Below(count)));
  return shape;
}

}  // namespace spillway::fuzz
