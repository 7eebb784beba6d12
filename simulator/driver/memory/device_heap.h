// A heap of mapped memory: large requests get their own range and block, small ones share slabs.
//
// One each for cuMemAlloc, managed memory and each memory pool.
//
// Invariants
//  1. Addresses are multiples of 512; those of requests of 1 MiB and more are multiples of 2 MiB.
//  2. A slab exists only while it holds an allocation: an empty heap holds no physical memory.
//  3. At least one unmapped granule lies between two large ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {

class DeviceHeap {
 public:
  static constexpr std::size_t kSmallAlignment = 512;
  static constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

  DeviceHeap(PhysicalMemory& physical, AddressSpace& addresses, Location location,
             Audience audience = Audience::kNamed)
      : physical_(physical), addresses_(addresses), location_(location), audience_(audience) {}
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  std::uintptr_t Allocate(std::size_t size_bytes);
  void Free(std::uintptr_t address);

  bool IsFor(int device) const {
    return location_ == Location::kHost || physical_.device() == device ||
           also_for_.contains(device);
  }
  void SetAccessOf(int device, Access access);

  std::uint64_t physical_bytes() const { return physical_bytes_; }

 private:
  struct Slab {
    std::map<std::size_t, std::size_t> free;
    std::map<std::size_t, std::size_t> used;
  };

  std::uintptr_t MapRange(std::size_t size_bytes);
  void UnmapRange(std::uintptr_t base);
  static bool TakeFrom(Slab& slab, std::size_t size_bytes, std::size_t& offset);
  static void ReturnTo(Slab& slab, std::size_t offset);

  PhysicalMemory& physical_;
  AddressSpace& addresses_;
  const Location location_;
  const Audience audience_;
  std::set<int> also_for_;
  std::uint64_t physical_bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> ranges_;  // large ones: reserved bytes by base
  std::map<std::uintptr_t, Slab> slabs_;
};

}  // namespace spillway::simulator
