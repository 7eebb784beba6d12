#include "simulator/driver/device/vmm.h"

#include <algorithm>

#include <fcntl.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/environment.h"
#include "simulator/driver/failure.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/shared_files.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kHostPage = 4096;

Location CheckedLocation(const Devices& devices, const CUmemAllocationProp& properties) {
  Require(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  switch (properties.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      devices.At(properties.location.id);
      return Location::kDevice;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      Require(HasHostNumaMemory(), CUDA_ERROR_NOT_SUPPORTED);
      Require(properties.location.id == 0, CUDA_ERROR_INVALID_DEVICE);
      return Location::kHost;
    case CU_MEM_LOCATION_TYPE_HOST:
      Require(properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE);
      return Location::kHost;
    default:  // HOST_NUMA_CURRENT too: cuMemCreate rejects it
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

Access CheckedAccess(CUmemAccess_flags flags) {
  switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
      return Access::kNone;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return Access::kRead;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return Access::kReadWrite;
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

bool IsHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

}  // namespace

bool HasHostNumaMemory() {
  const char* const setting = std::getenv(environment::kSimHostNuma);
  return setting == nullptr || std::strcmp(setting, "0") != 0;
}

CUdeviceptr Vmm::Reserve(std::size_t size_bytes, std::size_t alignment_bytes, CUdeviceptr hint) {
  Require(size_bytes != 0 && size_bytes % kHostPage == 0);
  Require((alignment_bytes & (alignment_bytes - 1)) == 0);
  // Like the driver's ranges, these always start at whole granules.
  const std::uintptr_t base =
      addresses_.Reserve(size_bytes, std::max(alignment_bytes, kGranule), hint);
  Require(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
  reservations_.emplace(base, size_bytes);
  return base;
}

void Vmm::FreeReservation(CUdeviceptr base, std::size_t size_bytes) {
  const auto reservation = reservations_.find(base);
  Require(reservation != reservations_.end() && reservation->second == size_bytes);
  Require(addresses_.IsFreeOfMappings(base, size_bytes));
  addresses_.Free(base, size_bytes);
  reservations_.erase(reservation);
}

CUmemGenericAllocationHandle Vmm::Create(std::size_t size_bytes,
                                         const CUmemAllocationProp& properties) {
  const Location location = CheckedLocation(devices_, properties);
  Require(size_bytes != 0 && size_bytes % kGranule == 0);
  const int device = location == Location::kDevice ? properties.location.id : 0;
  PhysicalRef block = devices_.At(device).physical.Create(size_bytes, location);
  handles_.emplace(next_handle_, Handle{std::move(block), properties, 1});
  return next_handle_++;
}

void Vmm::Release(CUmemGenericAllocationHandle handle) {
  const auto found = handles_.find(handle);
  Require(found != handles_.end());
  if (--found->second.references == 0) handles_.erase(found);
}

CUmemGenericAllocationHandle Vmm::Retain(CUdeviceptr address) {
  const Mapping* mapping = addresses_.Find(address);
  Require(mapping != nullptr);
  const auto mapped = mapped_.find(mapping->base);
  Require(mapped != mapped_.end());
  const auto [entry, fresh] = handles_.try_emplace(
      mapped->second.handle, Handle{mapping->block, mapped->second.properties, 0});
  ++entry->second.references;
  return entry->first;
}

int Vmm::Export(CUmemGenericAllocationHandle handle) const {
  const auto found = handles_.find(handle);
  Require(found != handles_.end());
  Require((found->second.properties.requestedHandleTypes &
           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0);
  const int file = found->second.block->File();
  Require(file >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  files_[InodeOf(file)] = found->second.block;
  const int exported = fcntl(file, F_DUPFD_CLOEXEC, 0);
  Require(exported >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  return exported;
}

CUmemGenericAllocationHandle Vmm::Import(int file) {
  BlockFile described;
  Require(DescribeBlockFile(file, described));
  PhysicalMemory& memory = devices_.At(described.device).physical;
  PhysicalRef block = OwnBlock(InodeOf(file));
  if (block == nullptr) {
    const int kept = fcntl(file, F_DUPFD_CLOEXEC, 0);
    Require(kept >= 0, CUDA_ERROR_OPERATING_SYSTEM);
    block = memory.Adopt(kept, described.size_bytes, described.location);
    files_[InodeOf(file)] = block;
  }
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = described.location == Location::kDevice
                                 ? CU_MEM_LOCATION_TYPE_DEVICE
                                 : CU_MEM_LOCATION_TYPE_HOST_NUMA;
  properties.location.id = described.location == Location::kDevice ? described.device : 0;
  handles_.emplace(next_handle_, Handle{std::move(block), properties, 1});
  return next_handle_++;
}

PhysicalRef Vmm::OwnBlock(std::uint64_t inode) const {
  const auto found = files_.find(inode);
  return found == files_.end() ? nullptr : found->second.lock();
}

bool Vmm::IsForeign(CUmemGenericAllocationHandle handle) const {
  const auto found = handles_.find(handle);
  return found != handles_.end() && found->second.block->foreign();
}

const CUmemAllocationProp& Vmm::Properties(CUmemGenericAllocationHandle handle) const {
  const auto found = handles_.find(handle);
  Require(found != handles_.end());
  return found->second.properties;
}

void Vmm::Map(CUdeviceptr base, std::size_t size_bytes, std::size_t offset_bytes,
              CUmemGenericAllocationHandle handle) {
  const auto found = handles_.find(handle);
  Require(found != handles_.end() && size_bytes != 0 && base % kGranule == 0);
  Require(offset_bytes == 0 && size_bytes == found->second.block->size_bytes(),
          CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr reserved = 0;
  std::size_t reserved_bytes = 0;
  Require(FindReservation(base, reserved, reserved_bytes));
  Require(size_bytes <= reserved + reserved_bytes - base);
  Require(addresses_.IsFreeOfMappings(base, size_bytes));
  addresses_.Map(base, size_bytes, found->second.block, Access::kNone);
  mapped_.emplace(base, MappedHandle{handle, found->second.properties});
}

std::vector<CUdeviceptr> Vmm::WholeMappings(CUdeviceptr base, std::size_t size_bytes) const {
  Require(size_bytes != 0);
  const Mapping* mapping = addresses_.Find(base);
  Require(mapping == nullptr || mapping->base == base);
  std::vector<CUdeviceptr> bases;
  const CUdeviceptr end = base + size_bytes;
  for (mapping = addresses_.FindFrom(base); mapping != nullptr && mapping->base < end;
       mapping = addresses_.FindFrom(mapping->base + mapping->size_bytes)) {
    Require(mapped_.contains(mapping->base) && mapping->size_bytes <= end - mapping->base);
    bases.push_back(mapping->base);
  }
  return bases;
}

std::size_t Vmm::CountMappings(CUdeviceptr base, std::size_t size_bytes) const {
  return WholeMappings(base, size_bytes).size();
}

void Vmm::Unmap(CUdeviceptr base, std::size_t size_bytes) {
  const std::vector<CUdeviceptr> bases = WholeMappings(base, size_bytes);
  if (const std::string user = engine_.DoomUsersOf({base, size_bytes}); !user.empty()) {
    ++TheStatistics().unmapped_while_in_use;
    TheStatistics().AddViolation("cuMemUnmap under unfinished work: " + user);
  }
  for (const CUdeviceptr at : bases) {
    addresses_.Unmap(at);
    mapped_.erase(at);
  }
}

void Vmm::EndAtHole(CUdeviceptr base, std::vector<CUdeviceptr>* bases) const {
  const auto hole = std::find_if(bases->begin(), bases->end(), [&](CUdeviceptr at) {
    const bool is_adjacent = at == base;
    base = at + addresses_.Find(at)->size_bytes;
    return !is_adjacent;
  });
  bases->erase(hole, bases->end());
}

void Vmm::SetAccess(CUdeviceptr base, std::size_t size_bytes, const CUmemAccessDesc* accesses,
                    std::size_t count) {
  Require(accesses != nullptr && count != 0);
  std::vector<CUdeviceptr> bases = WholeMappings(base, size_bytes);
  EndAtHole(base, &bases);
  Require(!bases.empty());
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = accesses[i].location;
    CheckedAccess(accesses[i].flags);
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
      devices_.At(location.id);
    else
      Require(IsHost(location));
    for (const CUdeviceptr at : bases)
      Require(!IsHost(location) || addresses_.Find(at)->block->location() == Location::kHost);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Access access = CheckedAccess(accesses[i].flags);
    for (const CUdeviceptr at : bases) {
      if (IsHost(accesses[i].location))
        addresses_.SetHostAccess(at, access);
      else
        addresses_.SetDeviceAccess(at, access, accesses[i].location.id);
    }
  }
}

unsigned long long Vmm::GetAccess(const CUmemLocation& location, CUdeviceptr address) const {
  const Mapping* mapping = addresses_.Find(address);
  Require(mapping != nullptr && mapped_.contains(mapping->base));
  const Access access =
      IsHost(location)
          ? mapping->host_access
          : mapping->by_device[static_cast<std::size_t>(devices_.At(location.id).ordinal)];
  if (access == Access::kNone) return CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return access == Access::kRead ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                 : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

bool Vmm::FindReservation(CUdeviceptr address, CUdeviceptr& base, std::size_t& size_bytes) const {
  const auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  base = start;
  size_bytes = bytes;
  return address - start < bytes;
}

bool Vmm::FindMapping(CUdeviceptr address, CUmemAllocationProp& properties, CUdeviceptr& base,
                      std::size_t& size_bytes) const {
  const Mapping* mapping = addresses_.Find(address);
  if (mapping == nullptr) return false;
  const auto mapped = mapped_.find(mapping->base);
  if (mapped == mapped_.end()) return false;
  properties = mapped->second.properties;
  base = mapping->base;
  size_bytes = mapping->size_bytes;
  return true;
}

}  // namespace spillway::simulator
