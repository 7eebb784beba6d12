#include "simulator/driver/machine/identity.h"

#include <algorithm>
#include <cstdio>

namespace spillway::simulator {

DeviceUuid UuidOf(const Profile& profile, int device) {
  const std::string text = "sim-" + profile.name;
  DeviceUuid uuid{};
  std::copy_n(text.begin(), std::min(text.size(), uuid.size() - 1), uuid.begin());
  uuid.back() = static_cast<unsigned char>(device);
  return uuid;
}

std::vector<std::string> UuidsOf(const Profile& profile, int device_count) {
  std::vector<std::string> uuids;
  for (int device = 0; device < device_count; ++device) {
    std::string text = "GPU-";
    const DeviceUuid bytes = UuidOf(profile, device);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += digits;
    }
    uuids.push_back(text);
  }
  return uuids;
}

int BusOf(int device) { return device + 1; }

std::string BusIdOf(int device) {
  char text[sizeof "0000:01:00.0"];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", static_cast<unsigned>(BusOf(device)) & 0xffu);
  return text;
}

}  // namespace spillway::simulator
