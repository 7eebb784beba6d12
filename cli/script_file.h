// Reads the `#!` line of a script. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

// The interpreter's path as written after `#!`. Nullopt: not a script.
std::optional<std::string> ScriptInterpreter(std::string_view contents);

}  // namespace spillway::cli
