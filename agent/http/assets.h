// The live page's files (dashboards/live and dygraphs), built into the program.
#pragma once

#include <optional>
#include <string_view>

#include "agent/http/http_answer.h"

namespace spillway::agent {

// Nullopt: there is no such file.
std::optional<HttpAnswer> AssetAt(std::string_view path);

}  // namespace spillway::agent
