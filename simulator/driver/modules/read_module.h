// Reads what a module lists, whatever form its image has: fat binary, code object or PTX.
//
// One entry of a fat binary is read: all have the same kernels. Machine code is never touched.
//
// Invariants
//  1. Truncated and hostile images give nothing; no byte outside the image is read.
//  2. In a fat binary the code object for the device's architecture is read, else the one before
//     it, else any, else PTX.
#pragma once

#include <optional>

#include "base/byte_view.h"
#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

std::optional<ModuleList> ReadModule(base::ByteView image, int architecture);

// A wrapper's are those of its container. Empty if not all of them are mapped.
base::ByteView ImageBytes(const void* image);

}  // namespace spillway::simulator
