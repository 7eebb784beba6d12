// cudnnBackendFinalize, per kind of descriptor.
#pragma once

#include "simulator/dnn/graph/descriptor.h"

namespace spillway::simulator::dnn::graph {

// Without success the state is as before.
cudnnStatus_t Finalize(State& state);

}  // namespace spillway::simulator::dnn::graph
