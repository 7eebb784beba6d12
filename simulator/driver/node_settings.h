// Which simulated machine this process shares with others, by its environment: SPILLWAY_SIM_NODE and SPILLWAY_SIM_SEAT.
//
// Called once, in cuInit.
#pragma once

#include <memory>
#include <string>

#include "simulator/driver/node.h"
#include "simulator/driver/profile.h"

namespace spillway::simulator {

node::LinkRates LinkRatesOf(const Profile& profile);

// `node` stays null where the environment names none. False, and why: it cannot be shared.
bool JoinNode(Machine machine, bool shares_time, std::unique_ptr<Node>& node, std::string& error);

}  // namespace spillway::simulator
