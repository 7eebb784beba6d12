#include "interposer/steward/device_model.h"

#include <optional>

#include "interposer/driver/chunk_pool.h"
#include "scheduler/networks/devices.h"

namespace spillway::interposer {
namespace {

using scheduler::DeviceModel;
using scheduler::networks::Device;

constexpr DeviceModel kUnknownDevice{.to_host_bytes_per_second = 12'000'000'000,
                                     .to_device_bytes_per_second = 12'000'000'000,
                                     .to_host_both_bytes_per_second = 10'000'000'000,
                                     .to_device_both_bytes_per_second = 10'000'000'000,
                                     .copy_latency_ns = 10'000,
                                     .launch_ns = 5'000};

// "NVIDIA A100-SXM4-40GB" is "nvidiaa100-sxm4-40gb".
std::string Simplified(const std::string& name) {
  std::string simple;
  for (const char letter : name) {
    if (letter == ' ') continue;
    simple += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return simple;
}

KnownDevice ByName(const std::string& device_name) {
  const std::string simple = Simplified(device_name);
  for (const std::string& known : scheduler::networks::DeviceNames()) {
    if (simple.find(known) == std::string::npos) continue;
    if (const std::optional<Device> device = scheduler::networks::FindDevice(known))
      return {device->model, true};
  }
  return {kUnknownDevice, false};
}

}  // namespace

KnownDevice DeviceModelFor(const std::string& device_name) {
  KnownDevice device = ByName(device_name);
  device.model.chunk_bytes = static_cast<std::int64_t>(kGranuleBytes);
  return device;
}

}  // namespace spillway::interposer
