#include "simulator/driver/device/imports.h"

#include <unistd.h>

#include "simulator/driver/failure.h"

namespace spillway::simulator {

std::uintptr_t Imports::Open(const ExportedMemory& memory, const Context& context, bool& fresh) {
  fresh = false;
  for (auto& [address, opening] : open_) {
    if (opening.inode != memory.place.inode || opening.allocation_id != memory.allocation_id)
      continue;
    if (opening.context != &context) continue;
    ++opening.references;
    return address;
  }
  const int file = OpenPlace(memory.place);
  BlockFile block;
  Require(file >= 0 && DescribeBlockFile(file, block), CUDA_ERROR_MAP_FAILED);
  const PhysicalRef bytes =
      devices_.At(block.device).physical.Adopt(file, block.size_bytes, block.location);
  const std::size_t reserved_bytes = block.size_bytes + kGranule;
  const std::uintptr_t base = addresses_.Reserve(reserved_bytes, kGranule, 0);
  Require(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
  addresses_.Map(base, block.size_bytes, bytes, Access::kReadWrite);
  addresses_.SetDeviceAccess(base, Access::kReadWrite, context.ordinal());
  fresh = true;
  const std::uintptr_t address = base + memory.offset_bytes;
  open_.emplace(address, Opening{base, reserved_bytes, memory.place.inode, memory.allocation_id,
                                 &context, block.device, 1});
  return address;
}

bool Imports::Close(std::uintptr_t address) {
  const auto found = open_.find(address);
  Require(found != open_.end());
  if (--found->second.references > 0) return false;
  addresses_.Unmap(found->second.base);
  addresses_.Free(found->second.base, found->second.reserved_bytes);
  open_.erase(found);
  return true;
}

ExportedMemory Export(const AddressSpace& addresses, std::uint64_t magic, std::uintptr_t base,
                      std::size_t size_bytes, std::uint64_t allocation_id, std::uint64_t owner) {
  const Mapping* mapping = addresses.Find(base);
  Require(mapping != nullptr);
  const int file = mapping->block->File();
  Require(file >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  return {magic, PlaceOfOwn(file), base - mapping->base, size_bytes, allocation_id, owner};
}

}  // namespace spillway::simulator
