#include "simulator/driver/device/graph_memory.h"

#include <algorithm>

#include "simulator/driver/device/device.h"
#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

std::size_t WholeGranules(std::size_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

// An unmapped guard granule follows the range.
std::uintptr_t ReserveFor(AddressSpace& addresses, std::size_t bytes) {
  const std::uintptr_t base = addresses.Reserve(WholeGranules(bytes) + kGranule, kGranule, 0);
  Require(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
  return base;
}

}  // namespace

GraphAllocation::GraphAllocation(Device& on, AddressSpace& addresses, std::size_t bytes)
    : device(on), size_bytes(bytes), base(ReserveFor(addresses, bytes)), addresses_(addresses) {}

GraphAllocation::~GraphAllocation() {
  GiveBack();
  addresses_.Free(base, WholeGranules(size_bytes) + kGranule);
}

void GraphAllocation::AllocateMemory() {
  if (block_ != nullptr) return;
  block_ = device.physical.Create(WholeGranules(size_bytes), Location::kDevice);
  addresses_.Map(base, block_->size_bytes(), block_, Access::kReadWrite, Audience::kPeers);
}

void GraphAllocation::GiveBack() {
  if (block_ == nullptr) return;
  addresses_.Unmap(base);
  block_ = nullptr;
}

GraphAllocationRef GraphMemory::Reserve(Device& device, AddressSpace& addresses,
                                        std::size_t size_bytes) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  auto allocation = std::make_shared<GraphAllocation>(device, addresses, size_bytes);
  known_[allocation->base] = allocation;
  return allocation;
}

GraphAllocationRef GraphMemory::Find(std::uintptr_t base) const {
  const auto found = known_.find(base);
  return found == known_.end() ? nullptr : found->second.lock();
}

bool GraphMemory::Contains(std::uintptr_t address, std::size_t size_bytes) const {
  const auto after = known_.upper_bound(address);
  if (after == known_.begin()) return false;
  const GraphAllocationRef allocation = std::prev(after)->second.lock();
  return allocation != nullptr && address + size_bytes <= allocation->base + allocation->size_bytes;
}

void GraphMemory::MakeLive(const GraphAllocationRef& allocation) {
  const Device* const device = &allocation->device;
  live_[allocation->base] = allocation;
  used_high_bytes[device] = std::max(used_high_bytes[device], UsedBytes(*device));
  reserved_high_bytes[device] = std::max(reserved_high_bytes[device], ReservedBytes(*device));
}

GraphAllocationRef GraphMemory::RemoveLive(std::uintptr_t base) {
  const auto node = live_.extract(base);
  return node.empty() ? nullptr : node.mapped();
}

void GraphMemory::Trim(const Device& device) {
  for (const auto& [base, known] : known_) {
    const GraphAllocationRef allocation = known.lock();
    if (allocation == nullptr || &allocation->device != &device) continue;
    if (!IsLive(base) && IsDone(allocation->last_use)) allocation->GiveBack();
  }
}

std::uint64_t GraphMemory::UsedBytes(const Device& device) const {
  std::uint64_t bytes = 0;
  for (const auto& [base, allocation] : live_) {
    if (&allocation->device == &device) bytes += allocation->reserved_bytes();
  }
  return bytes;
}

std::uint64_t GraphMemory::ReservedBytes(const Device& device) const {
  std::uint64_t bytes = 0;
  for (const auto& [base, known] : known_) {
    const GraphAllocationRef allocation = known.lock();
    if (allocation != nullptr && &allocation->device == &device)
      bytes += allocation->reserved_bytes();
  }
  return bytes;
}

}  // namespace spillway::simulator
