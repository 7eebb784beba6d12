#include "agent/device/device_list.h"

#include <algorithm>
#include <optional>

#include "agent/config/device_uuid.h"
#include "agent/device/nvml.h"

namespace spillway::agent {
namespace {

std::string Names(const std::vector<NodeDevice>& devices) {
  std::string names;
  for (const NodeDevice& device : devices)
    if (device.is_found) names += (names.empty() ? "" : ", ") + device.name;
  return names.empty() ? "none" : names;
}

}  // namespace

std::vector<NodeDevice> ListDevices(const Config& config, std::vector<std::string>* problems) {
  std::vector<NodeDevice> devices;
  bool nvml_works = false;
  if (config.find_devices) {
    const Nvml nvml;
    nvml_works = nvml.works();
    devices = nvml.List();
    if (devices.empty() && config.devices.empty())
      problems->push_back(!nvml.is_installed() ? std::string(Nvml::kLibrary) + " is not installed"
                          : !nvml.works()      ? std::string(Nvml::kLibrary) + " does not work"
                                               : "NVML knows no device");
  }
  for (const DeviceSetting& setting : config.devices) {
    const std::optional<protocol::DeviceUuid> uuid = ParseUuid(setting.uuid);
    if (!uuid) {
      problems->push_back("'" + setting.uuid +
                          "' is no UUID like GPU-12345678-1234-1234-1234-123456789abc");
      continue;
    }
    NodeDevice device{*uuid, setting.uuid, "", setting.memory_bytes};
    const auto same = std::find_if(devices.begin(), devices.end(), [&](const NodeDevice& known) {
      return known.uuid == device.uuid;
    });
    if (same == devices.end() && setting.memory_bytes < 0) {
      problems->push_back("device " + setting.uuid +
                          " of the configuration is left out: its memory is a share, " +
                          "and NVML knows " + Names(devices) +
                          "; write the share of a device that NVML knows, " + "or bytes");
    } else if (same == devices.end()) {
      device.is_found = !nvml_works;
      if (nvml_works)
        problems->push_back("device " + setting.uuid +
                            " of the configuration was not found: NVML knows " + Names(devices) +
                            "; what is configured for it holds for none of them");
      devices.push_back(device);
    } else {
      same->memory_bytes =
          std::min(same->memory_bytes, BytesOf(setting.memory_bytes, same->memory_bytes));
    }
  }
  return devices;
}

}  // namespace spillway::agent
