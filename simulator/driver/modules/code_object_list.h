// The kernels and variables of a code object (cubin), from its directory.
//
// Kernels are the symbols that are marked as entries. Each has a section `.nv.info.<kernel>` of
// attributes, of which those about parameters are read: ordinal, offset and size of each. Variables
// are the symbols of `.nv.global*` and `.nv.constant3`.
// Source: NVIDIA's listing tools (cuobjdump -elf, nvdisasm) print these attributes by name; a test
// compares the layouts with those of the source from which nvcc made the fixtures.
#pragma once

#include <optional>

#include "base/byte_view.h"
#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

// Nothing if the file is no readable code object.
std::optional<ModuleList> ListCodeObject(base::ByteView file);

}  // namespace spillway::simulator
