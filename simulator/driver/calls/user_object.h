// User objects live as long as graphs refer to them; then a function of the program is called.
#pragma once

#include "simulator/driver/calls/graph.h"

namespace spillway::simulator {

UserObject& UserObjectOf(const Call& call, CUuserObject handle);
// After the last one the object is destroyed behind `after`.
void ReleaseUserObject(Call& call, UserObject* object, unsigned count,
                       const OperationRef& after = nullptr);
void ReleaseUserObjects(Call& call, const HeldObjects& held, const OperationRef& after = nullptr);

}  // namespace spillway::simulator
