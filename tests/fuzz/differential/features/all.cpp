#include "tests/fuzz/differential/features/all.h"

#include <cstring>

namespace spillway::fuzz {

const std::vector<const Feature*>& AllFeatures() {
  static const std::vector<const Feature*> all = {
      &Graphs(),   &Guests(),    &Pointers(), &Recompute(), &Structures(), &TensorMaps(),
      &Textures(), &Gradients(), &Barriers(), &Hidden(),    &Tables(),     &Switches(),
      &Beside(),   &Strays(),    &Early(),    &Own(),       &Workspaces(), &Mappings()};
  return all;
}

int FeatureNamed(const char* name) {
  for (std::size_t i = 0; i < AllFeatures().size(); ++i) {
    if (std::strcmp(AllFeatures()[i]->Name(), name) == 0) return static_cast<int>(i);
  }
  return kNone;
}

}  // namespace spillway::fuzz
