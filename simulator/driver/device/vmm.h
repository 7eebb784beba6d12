// Reservations, physical handles and mappings, by the driver's documented rules.
//
// Mappings live in the AddressSpace; a handle or a mapping holds a physical block.
//
// Invariants (a broken rule answers CUDA_ERROR_INVALID_VALUE and changes nothing)
//  1. Sizes and addresses are whole granules, sizes of reservations whole pages. Offsets are zero.
//  2. A mapping lies inside one reservation, on unmapped addresses. A new mapping has no access.
//  3. Access and unmapping apply to whole mappings; one call may cover several, and pass over
//  holes.
//  4. Unmapping does not wait. It dooms unfinished copies and sets over the range (engine), which
//     the statistics count and name. A kernel is counted too if its body touches the range, and
//     either had an address in it as a parameter or runs during the unmapping.
//  5. A released handle's memory stays while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "simulator/driver/device/device.h"
#include "simulator/driver/engine/engine.h"
#include "simulator/driver/memory/address_space.h"

namespace spillway::simulator {

// False simulates a driver before CUDA 12.2: no host memory at device addresses.
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
  int Export(CUmemGenericAllocationHandle handle) const;
  // The caller keeps the descriptor.
  CUmemGenericAllocationHandle Import(int file);
  const CUmemAllocationProp& Properties(CUmemGenericAllocationHandle handle) const;
  bool IsForeign(CUmemGenericAllocationHandle handle) const;

  void Map(CUdeviceptr base, std::size_t size_bytes, std::size_t offset_bytes,
           CUmemGenericAllocationHandle handle);
  void Unmap(CUdeviceptr base, std::size_t size_bytes);
  void SetAccess(CUdeviceptr base, std::size_t size_bytes, const CUmemAccessDesc* accesses,
                 std::size_t count);
  // Unmapping and setting access cost by mapping and not by call (docs/gpu).
  std::size_t CountMappings(CUdeviceptr base, std::size_t size_bytes) const;
  unsigned long long GetAccess(const CUmemLocation& location, CUdeviceptr address) const;

  bool FindReservation(CUdeviceptr address, CUdeviceptr& base, std::size_t& size_bytes) const;
  // False if these functions have not mapped it.
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
  // Throws if the range cuts one. Holes are passed over.
  std::vector<CUdeviceptr> WholeMappings(CUdeviceptr base, std::size_t size_bytes) const;
  void EndAtHole(CUdeviceptr base, std::vector<CUdeviceptr>* bases) const;

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
