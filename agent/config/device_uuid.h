// A device's UUID as text. Pure.
#pragma once

#include <string>

#include "protocol/message.h"

namespace spillway::agent {

// Takes "GPU-00000000-0000-..."; false: not a UUID.
bool ParseUuid(const std::string& text, protocol::DeviceUuid* out);

}  // namespace spillway::agent
