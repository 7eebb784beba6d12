// Device memory that the driver holds for graphs whose executables are gone: a launch has left it
// allocated, or is under way. It stays charged against the budget.
//
// Graph memory that no launch needs is trimmed, so what the driver then holds is in use. Source:
// cuDeviceGraphMemTrim, cuDeviceGetGraphMemAttribute.
#pragma once

#include "interposer/runtime/runtime.h"

namespace spillway::entry {

// Of its `charged_bytes`, what the driver still holds stays charged.
void KeepLeftGraphMemory(interposer::JobMemory* job, size_t charged_bytes);
// The program may have freed some of it. Cheap where there is none.
void RecountLeftGraphMemory();

}  // namespace spillway::entry
