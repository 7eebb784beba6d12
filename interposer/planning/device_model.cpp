#include "interposer/planning/device_model.h"

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

// Measured on an H100 (docs/gpu).
constexpr scheduler::MappingPrices kUnknownMapping{
    .map_ns = 1'000, .set_access_ns = 30'000, .unmap_ns = 20'000};

}  // namespace

KnownDevice DeviceModelFor(const std::string& device_name) {
  const std::optional<Device> known = scheduler::networks::FindProduct(device_name);
  KnownDevice device = {known ? known->model : kUnknownDevice, known.has_value()};
  device.model.chunk_bytes = static_cast<std::int64_t>(kGranuleBytes);
  device.model.mapping = known && known->mapping.AnyIsPaid() ? known->mapping : kUnknownMapping;
  device.model.mapping.piece_bytes = static_cast<std::int64_t>(kUsualChunkBytes);
  return device;
}

}  // namespace spillway::interposer
