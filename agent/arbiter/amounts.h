// Bytes as people read them, in the agent's reasons, pages and lines: "12.0 GiB", "512 MiB", "100 B". Pure.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::agent {

std::string InBytes(int64_t bytes);

}  // namespace spillway::agent
