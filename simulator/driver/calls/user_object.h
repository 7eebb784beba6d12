// User objects: what a program ties to the life of its graphs. The last reference's end calls the
// program's function.
//
// Called by the graph functions under the engine's mutex; the function runs on the engine's thread
// for host functions.
#pragma once

#include "simulator/driver/calls/graph.h"

namespace spillway::simulator {

// Throws CUDA_ERROR_INVALID_VALUE for what does not live.
UserObject& UserObjectOf(const Call& call, CUuserObject handle);
// Takes `count` references; the object goes after `after` when none is left.
void ReleaseUserObject(Call& call, UserObject* object, unsigned count,
                       const OperationRef& after = nullptr);
void ReleaseUserObjects(Call& call, const HeldObjects& held, const OperationRef& after = nullptr);

}  // namespace spillway::simulator
