// Virtual memory management: reservations, physical handles and mappings, by the rules of the
// driver's documentation.
//
// Called by the cuMem* VMM functions under the engine's mutex. Owns the handles and the
// reservations; mappings live in the AddressSpace, physical blocks as long as a handle or a mapping
// holds them.
//
// Invariants (broken rules answer CUDA_ERROR_INVALID_VALUE and change nothing)
//  1. Sizes, addresses and offsets are whole granules; the offset is zero.
//  2. A mapping lies inside one reservation, on addresses that nothing is mapped to. It has no
//  access at first.
//  3. Access is set, and mappings are removed, for whole mappings only; one call may take several
//  adjacent ones.
//  4. Unmapping waits for nothing. Unfinished copies and sets over the range are doomed (engine),
//  counted and named in
//     the statistics; so is a kernel that was given an address in it, or that runs right now, once
//     its body really touches the range.
//  5. A released handle's memory stays while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "simulator/driver/device/device.h"
#include "simulator/driver/engine/engine.h"
#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {

// Whether this driver maps host memory at device addresses, as those before CUDA 12.2 do not
// (SPILLWAY_SIM_HOST_NUMA).
bool HasHostNumaMemory();

class Vmm {
 public:
  Vmm(const Devices& devices, AddressSpace& addresses, Engine& engine)
      : devices_(devices), addresses_(addresses), engine_(engine) {}

  CUdeviceptr Reserve(std::size_t size_bytes, std::size_t alignment_bytes, CUdeviceptr hint);
  void FreeReservation(CUdeviceptr base, std::size_t size_bytes);

  CUmemGenericAllocationHandle Create(std::size_t size_bytes,
                                      const CUmemAllocationProp& properties);
  void Release(CUmemGenericAllocationHandle handle);
  CUmemGenericAllocationHandle Retain(CUdeviceptr address);
  // A descriptor for other processes, the caller's; for handles made with that type only.
  int Export(CUmemGenericAllocationHandle handle) const;
  // A handle of the same memory; the descriptor stays the caller's.
  CUmemGenericAllocationHandle Import(int file);
  const CUmemAllocationProp& Properties(CUmemGenericAllocationHandle handle) const;

  void Map(CUdeviceptr base, std::size_t size_bytes, std::size_t offset_bytes,
           CUmemGenericAllocationHandle handle);
  void Unmap(CUdeviceptr base, std::size_t size_bytes);
  void SetAccess(CUdeviceptr base, std::size_t size_bytes, const CUmemAccessDesc* accesses,
                 std::size_t count);
  unsigned long long GetAccess(const CUmemLocation& location, CUdeviceptr address) const;

  // The reservation that holds `address`; false if there is none.
  bool FindReservation(CUdeviceptr address, CUdeviceptr& base, std::size_t& size_bytes) const;
  // True if `address` is mapped by this group; `properties` and the mapping's bounds are filled in.
  bool FindMapping(CUdeviceptr address, CUmemAllocationProp& properties, CUdeviceptr& base,
                   std::size_t& size_bytes) const;

 private:
  struct Handle {
    PhysicalRef block;
    CUmemAllocationProp properties;
    std::uint64_t references;
  };
  struct MappedHandle {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties;
  };

  PhysicalRef OwnBlock(std::uint64_t inode) const;
  // Calls action(mapping base) for the whole mappings that make up the range; throws if they do
  // not.
  template <class Action>
  void ForWholeMappings(CUdeviceptr base, std::size_t size_bytes, Action action) const;

  const Devices& devices_;
  AddressSpace& addresses_;
  Engine& engine_;
  std::map<CUdeviceptr, std::size_t> reservations_;
  std::map<CUmemGenericAllocationHandle, Handle> handles_;
  std::map<CUdeviceptr, MappedHandle> mapped_;
  mutable std::map<std::uint64_t, std::weak_ptr<PhysicalBlock>>
      files_;  // by inode: exported and imported blocks
  CUmemGenericAllocationHandle next_handle_ = 0x5350494c00000001;
};

}  // namespace spillway::simulator
