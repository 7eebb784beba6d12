// What cudnnBackendFinalize checks and works out, per kind of descriptor.
#pragma once

#include "simulator/dnn/graph/descriptor.h"

namespace spillway::simulator::dnn::graph {

// On success the state is finalized; otherwise it is as before.
cudnnStatus_t Finalize(State& state);

}  // namespace spillway::simulator::dnn::graph
