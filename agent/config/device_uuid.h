// A device's UUID as people write it. Pure.
#pragma once

#include <string>

#include "protocol/message.h"

namespace spillway::agent {

// "GPU-00000000-0000-...": its 16 bytes; false when it is none.
bool ParseUuid(const std::string& text, protocol::DeviceUuid* out);

}  // namespace spillway::agent
