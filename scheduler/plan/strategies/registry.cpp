#include "scheduler/plan/strategies/registry.h"

#include "scheduler/plan/strategies/accudnn.h"
#include "scheduler/plan/strategies/autoswap.h"
#include "scheduler/plan/strategies/capuchin.h"
#include "scheduler/plan/strategies/delta.h"
#include "scheduler/plan/strategies/superneurons.h"
#include "scheduler/plan/strategies/vdnn.h"

namespace spillway::scheduler {

const std::vector<const Strategy*>& AllStrategies() {
  static const std::vector<const Strategy*> strategies = {
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

const Strategy* FindStrategy(std::string_view name) {
  for (const Strategy* strategy : AllStrategies()) {
    if (strategy->name() == name) return strategy;
  }
  return nullptr;
}

}  // namespace spillway::scheduler
