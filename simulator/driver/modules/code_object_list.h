// The kernels and variables of a code object (cubin), from its directory.
//
// Kernels are the symbols that are marked as entries. Each has a section `.nv.info.<kernel>` with
// ordinal, offset and size of its parameters. Variables are the symbols of `.nv.global*` and
// `.nv.constant3`.
// Source: NVIDIA's listing tools (cuobjdump -elf, nvdisasm) print these attributes by name.
#pragma once

#include <optional>

#include "base/byte_view.h"
#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

// Nothing if the file is no readable code object.
std::optional<ModuleList> ListCodeObject(base::ByteView file);

}  // namespace spillway::simulator
