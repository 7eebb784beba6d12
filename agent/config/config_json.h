// The configuration and its errors for scripts.
#pragma once

#include <string>

#include "agent/config/config_file.h"

namespace spillway::agent {

// Objects with "schema": 1; within a schema fields keep their meaning. Each ends with a newline.
std::string CheckAsJson(const ConfigResult& result);  // "valid", "errors", "files"
std::string ShowAsJson(const Config& config);         // "configuration": as in the file
std::string DiffAsJson(const Config& config);  // "differences" from the defaults, one string each

}  // namespace spillway::agent
