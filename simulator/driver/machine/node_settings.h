// Joins the shared machine that the environment names: SPILLWAY_SIM_NODE and SPILLWAY_SIM_SLOT.
#pragma once

#include <memory>

#include "base/result.h"
#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/profile.h"

namespace spillway::simulator {

node::LinkRates LinkRatesOf(const Profile& profile);

base::Result<std::unique_ptr<Node>> JoinNode(Machine machine, bool shares_time);

}  // namespace spillway::simulator
