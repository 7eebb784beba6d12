#include "scheduler/networks/devices.h"

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "scheduler/networks/device_texts.h"

namespace spillway::scheduler::networks {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// 0 if there is no positive number.
int64_t Figure(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos ||
        Trimmed(line.substr(0, equals)) != key)
      continue;
    const std::string_view value = Trimmed(line.substr(equals + 1));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    return whole && number > 0 ? number : 0;
  }
  return 0;
}

}  // namespace

std::optional<Device> ParseDevice(std::string_view name, std::string_view text) {
  Device device;
  device.name = name;
  bool complete = true;
  const auto need = [&](std::string_view key) {
    const int64_t value = Figure(text, key);
    complete = complete && value > 0;
    return value;
  };
  device.capacity_bytes = need("capacity_bytes");
  device.rates = {need("fp32_flops_per_second"), need("memory_bytes_per_second"),
                  need("launch_overhead_ns")};
  device.model.to_host_bytes_per_second = need("d2h_bytes_per_second");
  device.model.to_device_bytes_per_second = need("h2d_bytes_per_second");
  device.model.to_host_both_bytes_per_second = need("d2h_both_bytes_per_second");
  device.model.to_device_both_bytes_per_second = need("h2d_both_bytes_per_second");
  device.model.copy_latency_ns = need("copy_overhead_ns");
  device.model.launch_ns = device.rates.launch_ns;
  device.mapping = {Figure(text, "vmm_map_ns"), Figure(text, "vmm_set_access_ns"),
                    Figure(text, "vmm_unmap_ns")};
  if (!complete) return std::nullopt;
  return device;
}

std::vector<std::string> DeviceNames() {
  std::vector<std::string> names;
  for (const DeviceText& device : DeviceTexts()) names.emplace_back(device.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Device> FindDevice(std::string_view name) {
  for (const DeviceText& device : DeviceTexts()) {
    if (device.name == name) return ParseDevice(name, device.text);
  }
  return std::nullopt;
}

std::optional<Device> FindProduct(std::string_view product) {
  std::string simple;
  for (const char letter : product) {
    if (letter == ' ') continue;
    simple += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  for (const std::string& known : DeviceNames()) {
    if (simple.find(known) != std::string::npos) return FindDevice(known);
  }
  return std::nullopt;
}

ComputeRates EffectiveRates(const Device& device, int32_t flops_percent, int32_t memory_percent) {
  return {base::scale(device.rates.flops_per_second, flops_percent, 100),
          base::scale(device.rates.memory_bytes_per_second, memory_percent, 100),
          device.rates.launch_ns};
}

}  // namespace spillway::scheduler::networks
