// The simulated devices of a process, all of one kind (the profile).
#pragma once

#include <memory>
#include <vector>

#include "simulator/driver/device/context.h"
#include "simulator/driver/memory/device_heap.h"
#include "simulator/driver/memory/physical_memory.h"

namespace spillway::simulator {

class Node;
struct Pool;

struct Device {
  Device(int number, std::uint64_t capacity_bytes, AddressSpace& addresses, Node* node)
      : ordinal(number),
        physical(capacity_bytes, number, node),
        heap(physical, addresses, Location::kDevice, Audience::kPeers) {}

  const int ordinal;
  PhysicalMemory physical;
  DeviceHeap heap;  // cuMemAlloc's
  std::unique_ptr<Context> primary;
  int primary_references = 0;
  unsigned primary_flags = 0;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
};

class Devices {
 public:
  Devices(int count, std::uint64_t capacity_bytes, AddressSpace& addresses, Node* node = nullptr);

  Device& At(int ordinal) const;
  int count() const { return static_cast<int>(devices_.size()); }
  auto begin() const { return devices_.begin(); }
  auto end() const { return devices_.end(); }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace spillway::simulator
