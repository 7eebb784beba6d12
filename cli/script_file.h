// The `#!` line of a script.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

// The interpreter's path as written after `#!`; nothing when `contents` is no script.
std::optional<std::string> ScriptInterpreter(std::string_view contents);

}  // namespace spillway::cli
