#include "simulator/driver/device/device.h"

#include "simulator/driver/failure.h"

namespace spillway::simulator {

Devices::Devices(int count, std::uint64_t capacity_bytes, AddressSpace& addresses, Node* node) {
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    devices_.push_back(std::make_unique<Device>(ordinal, capacity_bytes, addresses, node));
  }
}

Device& Devices::At(int ordinal) const {
  Require(ordinal >= 0 && ordinal < count(), CUDA_ERROR_INVALID_DEVICE);
  return *devices_[static_cast<std::size_t>(ordinal)];
}

}  // namespace spillway::simulator
