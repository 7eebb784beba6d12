// Reads the `#!` line of a script.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::cli {

std::optional<std::string> ScriptInterpreter(std::string_view contents);

}  // namespace spillway::cli
