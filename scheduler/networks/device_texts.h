// The texts of simulator/profiles/*.profile, compiled in by networks/device_texts.cmake.
#pragma once

#include <string_view>
#include <vector>

namespace spillway::scheduler::networks {

struct DeviceText {
  std::string_view name;
  std::string_view text;
};

std::vector<DeviceText> DeviceTexts();

}  // namespace spillway::scheduler::networks
