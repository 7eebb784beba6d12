#include "agent/node/table/unknown_devices.h"

#include <algorithm>

namespace spillway::agent {

namespace {

constexpr std::ptrdiff_t kMostOfUser = 2;
constexpr size_t kMost = 16;

}  // namespace

bool UnknownDevices::Add(const std::string& name, uid_t uid) {
  const auto is_listed = [&](const Device& one) { return one.name == name; };
  const auto is_users = [&](const Device& one) { return one.uid == uid; };
  if (std::any_of(devices_.begin(), devices_.end(), is_listed)) return false;
  if (std::count_if(devices_.begin(), devices_.end(), is_users) >= kMostOfUser)
    devices_.erase(std::find_if(devices_.begin(), devices_.end(), is_users));
  if (devices_.size() >= kMost) devices_.erase(devices_.begin());
  devices_.push_back({name, uid});
  return true;
}

std::vector<std::string> UnknownDevices::Names() const {
  std::vector<std::string> names;
  for (const Device& device : devices_) names.push_back(device.name);
  return names;
}

std::string TextOf(const protocol::DeviceUuid& uuid) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {digits[uuid[i] >> 4], digits[uuid[i] & 15]};
  }
  return text;
}

}  // namespace spillway::agent
