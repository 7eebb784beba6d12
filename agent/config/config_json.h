// The configuration, and what is said about it, for scripts. Pure.
#pragma once

#include <string>

#include "agent/config/config_file.h"

namespace spillway::agent {

// Objects with "schema": 1, whose fields keep their meaning within it; a line's end behind each.
std::string CheckAsJson(const ConfigResult& result);  // "valid", "errors", "files"
std::string ShowAsJson(const Config& config);         // "configuration": as the file would be
std::string DiffAsJson(const Config& config);         // "differences" from the defaults, as lines

}  // namespace spillway::agent
