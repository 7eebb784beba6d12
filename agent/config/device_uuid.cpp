#include "agent/config/device_uuid.h"

#include <cctype>

namespace spillway::agent {

std::optional<protocol::DeviceUuid> ParseUuid(const std::string& text) {
  if (text.rfind("GPU-", 0) != 0) return {};
  size_t digits = 0;
  protocol::DeviceUuid uuid{};
  for (char c : text.substr(4)) {
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c)) || digits >= 2 * uuid.size()) return {};
    const int value =
        std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : std::tolower(c) - 'a' + 10;
    uuid[digits / 2] = static_cast<uint8_t>(uuid[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 2 * uuid.size() ? std::optional(uuid) : std::nullopt;
}

}  // namespace spillway::agent
