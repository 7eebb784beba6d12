// Memory that graphs allocate and free by nodes of their own.
//
// Called by memory nodes, graph launches, frees and trims under the engine's mutex. An address is
// reserved when the node is made and stays the same at every launch; device memory comes at the
// first launch and goes at a trim, or with the last graph, executable or unfinished launch that
// knows it.
//
// Invariants
//  1. Between the allocating launch and the free, the allocation is live: it stays, whatever
//  happens to its graph.
//  2. A launch that would allocate what is live is CUDA_ERROR_INVALID_VALUE, unless the executable
//  frees by itself.
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

  // Throws CUDA_ERROR_OUT_OF_MEMORY.
  void Materialise();
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
  // Null for addresses that no memory node has.
  GraphAllocationRef Find(std::uintptr_t base) const;
  // True if a memory node has these bytes, whether or not there is memory behind them now.
  bool Contains(std::uintptr_t address, std::size_t size_bytes) const;

  bool IsLive(std::uintptr_t base) const { return live_.contains(base); }
  void MakeLive(const GraphAllocationRef& allocation);
  // Returns what was live there, or null.
  GraphAllocationRef EndLife(std::uintptr_t base);
  void Trim(const Device& device);

  std::uint64_t UsedBytes(const Device& device) const;
  std::uint64_t ReservedBytes(const Device& device) const;
  // By device; they rise with use and are reset by the program.
  std::map<const Device*, std::uint64_t> used_high_bytes;
  std::map<const Device*, std::uint64_t> reserved_high_bytes;

 private:
  std::map<std::uintptr_t, std::weak_ptr<GraphAllocation>> known_;
  std::map<std::uintptr_t, GraphAllocationRef> live_;
};

}  // namespace spillway::simulator
