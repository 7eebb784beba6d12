// The kernels and variables that PTX declares.
//
// Only declarations at the top level are read: `.entry` with its `.param` list, `.global` and
// `.const`. Bodies are skipped.
// Source: PTX ISA, "Directives" and "State Spaces, Types, and Variables".
#pragma once

#include <optional>
#include <string_view>

#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

// Nothing if a declaration cannot be read.
std::optional<ModuleList> ListPtx(std::string_view text);

}  // namespace spillway::simulator
