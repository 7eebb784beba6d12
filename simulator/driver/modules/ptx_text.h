// PTX that declares what a list holds, so that a linked module is an image like any other.
#pragma once

#include <string>

#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

// ListPtx (ptx_list.h) reads the same list from it. Kernels have no bodies.
std::string PtxOf(const ModuleList& list);

}  // namespace spillway::simulator
