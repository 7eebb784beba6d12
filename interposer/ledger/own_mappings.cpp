#include "interposer/ledger/own_mappings.h"

namespace spillway::interposer {

using base::MutexLock;

void OwnMappings::Created(CUmemGenericAllocationHandle handle, const Memory& memory) {
  const MutexLock lock(mutex_);
  handles_[handle] = {std::make_shared<Physical>(Physical{memory, 1}), 1};
}

void OwnMappings::Retained(CUmemGenericAllocationHandle handle, CUdeviceptr address) {
  const MutexLock lock(mutex_);
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return;
  const std::shared_ptr<Physical>& physical = std::prev(next)->second;
  Handle& entry = handles_[handle];
  entry.physical = physical;
  ++entry.references;
  ++physical->holders;
}

void OwnMappings::Mapped(CUdeviceptr base, CUmemGenericAllocationHandle handle) {
  const MutexLock lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return;
  ++found->second.physical->holders;
  mappings_[base] = found->second.physical;
}

void OwnMappings::Let(const std::shared_ptr<Physical>& physical, Ended* ended) {
  if (--physical->holders == 0) ended->push_back(physical->memory);
}

void OwnMappings::Released(CUmemGenericAllocationHandle handle, Ended* ended) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return;
  Let(found->second.physical, ended);
  if (--found->second.references == 0) handles_.erase(found);
}

void OwnMappings::Unmapped(CUdeviceptr base, size_t bytes, Ended* ended) {
  auto at = mappings_.lower_bound(base);
  while (at != mappings_.end() && at->first < base + bytes) {
    Let(at->second, ended);
    at = mappings_.erase(at);
  }
}

}  // namespace spillway::interposer
