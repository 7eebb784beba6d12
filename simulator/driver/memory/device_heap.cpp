#include "simulator/driver/memory/device_heap.h"

#include <iterator>

#include "simulator/driver/failure.h"

namespace spillway::simulator {

DeviceHeap::~DeviceHeap() {
  while (!ranges_.empty()) UnmapRange(ranges_.begin()->first);
}

std::uintptr_t DeviceHeap::Allocate(std::size_t size_bytes) {
  if (size_bytes >= kLargeBytes) return MapRange(size_bytes);
  const std::size_t needed = (size_bytes + kSmallAlignment - 1) / kSmallAlignment * kSmallAlignment;
  std::size_t offset = 0;
  for (auto& [base, slab] : slabs_) {
    if (TakeFrom(slab, needed, offset)) return base + offset;
  }
  const std::uintptr_t base = MapRange(kGranule);
  Slab& slab = slabs_[base];
  slab.free.emplace(0, kGranule);
  TakeFrom(slab, needed, offset);
  return base + offset;
}

void DeviceHeap::Free(std::uintptr_t address) {
  const auto slab = slabs_.find(address / kGranule * kGranule);
  if (slab == slabs_.end()) {
    UnmapRange(address);
    return;
  }
  ReturnTo(slab->second, address - slab->first);
  if (!slab->second.used.empty()) return;
  const std::uintptr_t base = slab->first;
  slabs_.erase(slab);
  UnmapRange(base);
}

std::uintptr_t DeviceHeap::MapRange(std::size_t size_bytes) {
  const PhysicalRef block = physical_.Create(size_bytes, location_);
  const std::size_t reserved = block->size_bytes() + kGranule;
  const std::uintptr_t base = addresses_.Reserve(reserved, kGranule, 0);
  Require(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
  addresses_.Map(base, block->size_bytes(), block, Access::kReadWrite, audience_);
  for (const int device : also_for_) addresses_.SetDeviceAccess(base, Access::kReadWrite, device);
  if (location_ == Location::kHost) addresses_.SetHostAccess(base, Access::kReadWrite);
  ranges_.emplace(base, reserved);
  physical_bytes_ += block->size_bytes();
  return base;
}

void DeviceHeap::SetAccessOf(int device, Access access) {
  also_for_.erase(device);
  if (access != Access::kNone) also_for_.insert(device);
  for (const auto& [base, reserved] : ranges_) addresses_.SetDeviceAccess(base, access, device);
}

void DeviceHeap::UnmapRange(std::uintptr_t base) {
  const auto range = ranges_.find(base);
  addresses_.Unmap(base);
  addresses_.Free(base, range->second);
  physical_bytes_ -= range->second - kGranule;
  ranges_.erase(range);
}

bool DeviceHeap::TakeFrom(Slab& slab, std::size_t size_bytes, std::size_t& offset) {
  for (auto room = slab.free.begin(); room != slab.free.end(); ++room) {
    if (room->second < size_bytes) continue;
    offset = room->first;
    if (room->second > size_bytes)
      slab.free.emplace(offset + size_bytes, room->second - size_bytes);
    slab.free.erase(room);
    slab.used.emplace(offset, size_bytes);
    return true;
  }
  return false;
}

void DeviceHeap::ReturnTo(Slab& slab, std::size_t offset) {
  const auto used = slab.used.find(offset);
  std::size_t size_bytes = used->second;
  slab.used.erase(used);
  auto next = slab.free.lower_bound(offset);
  if (next != slab.free.end() && next->first == offset + size_bytes) {
    size_bytes += next->second;
    next = slab.free.erase(next);
  }
  if (next != slab.free.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
    std::prev(next)->second += size_bytes;
  } else {
    slab.free.emplace(offset, size_bytes);
  }
}

}  // namespace spillway::simulator
