#include "agent/config/device_uuid.h"

#include <cctype>

namespace spillway::agent {

bool ParseUuid(const std::string& text, protocol::DeviceUuid* out) {
  if (text.rfind("GPU-", 0) != 0) return false;
  size_t digits = 0;
  *out = {};
  for (char c : text.substr(4)) {
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c)) || digits >= 2 * out->size()) return false;
    const int value =
        std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : std::tolower(c) - 'a' + 10;
    (*out)[digits / 2] = static_cast<uint8_t>((*out)[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 2 * out->size();
}

}  // namespace spillway::agent
