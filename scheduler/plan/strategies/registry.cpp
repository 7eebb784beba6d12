#include "scheduler/plan/strategies/registry.h"

#include "scheduler/plan/strategies/accudnn.h"
#include "scheduler/plan/strategies/autoswap.h"
#include "scheduler/plan/strategies/capuchin.h"
#include "scheduler/plan/strategies/delta.h"
#include "scheduler/plan/strategies/spillway.h"
#include "scheduler/plan/strategies/superneurons.h"
#include "scheduler/plan/strategies/vdnn.h"

namespace spillway::scheduler {

// Never destroyed: a plan may still be in the making when the process ends.
const std::vector<const ChoosingStrategy*>& PaperStrategies() {
  static const auto& strategies = *new std::vector<const ChoosingStrategy*>{
      &SuperNeuronsLiveness(),
      &VdnnAll(),
      &VdnnConv(),
      &VdnnDynamic(),
      &SuperNeuronsOffload(),
      &SuperNeuronsCache(),
      &SuperNeuronsSpeed(),
      &SuperNeuronsMemory(),
      &SuperNeuronsCostAware(),
      &SuperNeurons(),
      &AccUdnn(),
      &AutoSwapDoa(),
      &AutoSwapAoa(),
      &AutoSwapWdoa(),
      &AutoSwapSwdoa(),
      &AutoSwap(),
      &Delta(),
      &Capuchin(),
  };
  return strategies;
}

const std::vector<const Strategy*>& AllStrategies() {
  static const auto& strategies = *[] {
    auto* const all =
        new std::vector<const Strategy*>(PaperStrategies().begin(), PaperStrategies().end());
    all->push_back(&SpillwayStrategy());
    return all;
  }();
  return strategies;
}

const Strategy* FindStrategy(std::string_view name) {
  for (const Strategy* strategy : AllStrategies()) {
    if (strategy->name() == name) return strategy;
  }
  return nullptr;
}

}  // namespace spillway::scheduler
