// User objects live as long as graphs refer to them; then a function of the program is called.
//
// Called by the graph functions under the engine's mutex; the function runs on the engine's thread.
#pragma once

#include "simulator/driver/calls/graph.h"

namespace spillway::simulator {

// Throws CUDA_ERROR_INVALID_VALUE for a dead handle.
UserObject& UserObjectOf(const Call& call, CUuserObject handle);
// Drops `count` references. After the last one the object is destroyed behind `after`.
void ReleaseUserObject(Call& call, UserObject* object, unsigned count,
                       const OperationRef& after = nullptr);
void ReleaseUserObjects(Call& call, const HeldObjects& held, const OperationRef& after = nullptr);

}  // namespace spillway::simulator
