// Memory that graphs allocate and free by their nodes.
//
// Making a node reserves an address, the same at every launch. The first launch allocates device
// memory. A trim frees it, or the end of the last graph, executable and launch that knows it.
//
// Invariants
//  1. Between the allocating launch and the free, the allocation is live. It outlives its graph.
//  2. Allocating live memory again is CUDA_ERROR_INVALID_VALUE, except with automatic frees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "simulator/driver/engine/operation.h"
#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {

struct Device;

class GraphAllocation {
 public:
  GraphAllocation(Device& device, AddressSpace& addresses, std::size_t size_bytes);
  ~GraphAllocation();
  GraphAllocation(const GraphAllocation&) = delete;
  GraphAllocation& operator=(const GraphAllocation&) = delete;

  void AllocateMemory();
  void GiveBack();
  std::uint64_t reserved_bytes() const { return block_ == nullptr ? 0 : block_->size_bytes(); }

  Device& device;
  const std::size_t size_bytes;
  const std::uintptr_t base;
  OperationRef last_use;

 private:
  AddressSpace& addresses_;
  PhysicalRef block_;
};
using GraphAllocationRef = std::shared_ptr<GraphAllocation>;

class GraphMemory {
 public:
  GraphAllocationRef Reserve(Device& device, AddressSpace& addresses, std::size_t size_bytes);
  GraphAllocationRef Find(std::uintptr_t base) const;
  // With or without memory behind them.
  bool Contains(std::uintptr_t address, std::size_t size_bytes) const;

  bool IsLive(std::uintptr_t base) const { return live_.contains(base); }
  void MakeLive(const GraphAllocationRef& allocation);
  GraphAllocationRef RemoveLive(std::uintptr_t base);
  void Trim(const Device& device);

  std::uint64_t UsedBytes(const Device& device) const;
  std::uint64_t ReservedBytes(const Device& device) const;
  // Use raises the marks; the program resets them.
  std::map<const Device*, std::uint64_t> used_high_bytes;
  std::map<const Device*, std::uint64_t> reserved_high_bytes;

 private:
  std::map<std::uintptr_t, std::weak_ptr<GraphAllocation>> known_;
  std::map<std::uintptr_t, GraphAllocationRef> live_;
};

}  // namespace spillway::simulator
