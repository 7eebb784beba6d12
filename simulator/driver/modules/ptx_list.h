// The kernels and variables that PTX declares.
//
// Only declarations at the top level of the text are read: `.entry` with its `.param` list,
// `.global` and `.const`. Bodies are skipped; no instruction is looked at.
// Source: PTX ISA, "Directives" and "State Spaces, Types, and Variables".
#pragma once

#include <optional>
#include <string_view>

#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

// Nothing if the text is no PTX, or if a declaration cannot be read.
std::optional<ModuleList> ListPtx(std::string_view text);

}  // namespace spillway::simulator
