// A device's UUID as text.
#pragma once

#include <optional>
#include <string>

#include "protocol/message.h"

namespace spillway::agent {

// Takes "GPU-00000000-0000-..."; nullopt: not a UUID.
std::optional<protocol::DeviceUuid> ParseUuid(const std::string& text);

}  // namespace spillway::agent
