// Memory of other processes that this process has opened, by CUDA IPC or by a pool's pointers.
//
// The exporter owns and counts the bytes.
//
// Invariants
//  1. A context that opens memory again gets the same address until it has closed it as often.
//  2. Each opening has an address range of its own, apart from this process's memory.
#pragma once

#include <cstdint>
#include <map>

#include "simulator/driver/device/device.h"
#include "simulator/driver/memory/address_space.h"
#include "simulator/driver/memory/shared_files.h"

namespace spillway::simulator {

struct ExportedMemory {
  std::uint64_t magic;
  FilePlace place;
  std::uint64_t offset_bytes;
  std::uint64_t size_bytes;
  std::uint64_t allocation_id;
  std::uint64_t owner;  // for memory of a pool: the pool
};
static_assert(sizeof(ExportedMemory) <= 64, "a handle has 64 bytes");

class Imports {
 public:
  Imports(const Devices& devices, AddressSpace& addresses)
      : devices_(devices), addresses_(addresses) {}

  std::uintptr_t Open(const ExportedMemory& memory, const Context& context, bool& fresh);
  // True: the last close.
  bool Close(std::uintptr_t address);
  int DeviceOf(std::uintptr_t address) const { return open_.at(address).device; }

 private:
  struct Opening {
    std::uintptr_t base;
    std::size_t reserved_bytes;
    std::uint64_t inode;
    std::uint64_t allocation_id;
    const Context* context;
    int device;
    int references;
  };

  const Devices& devices_;
  AddressSpace& addresses_;
  std::map<std::uintptr_t, Opening> open_;
};

// The range lies in one mapping. Throws CUDA_ERROR_OUT_OF_MEMORY.
ExportedMemory Export(const AddressSpace& addresses, std::uint64_t magic, std::uintptr_t base,
                      std::size_t size_bytes, std::uint64_t allocation_id, std::uint64_t owner);

}  // namespace spillway::simulator
