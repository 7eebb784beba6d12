#include "interposer/dnn/workspace_offers.h"

#include <algorithm>

namespace spillway::dnn {

std::vector<bool> HiddenOffers(std::span<const WorkspaceOffer> offers,
                               const OperationMemory& memory) {
  const auto serves = [&](const WorkspaceOffer& offer) {
    return offer.is_available && memory.Fits(offer.workspace_bytes);
  };
  std::vector<bool> hidden;
  for (const WorkspaceOffer& offer : offers) {
    const bool has_substitute = std::any_of(
        offers.begin(), offers.end(),
        [&](const WorkspaceOffer& other) { return other.kind == offer.kind && serves(other); });
    hidden.push_back(offer.is_available && !serves(offer) && has_substitute);
  }
  return hidden;
}

}  // namespace spillway::dnn
