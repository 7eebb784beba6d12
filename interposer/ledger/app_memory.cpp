#include "interposer/ledger/app_memory.h"

#include <algorithm>

namespace spillway::interposer {

using base::MutexLock;

AppMemory& AppMemory::Pinned() {
  static AppMemory* const pinned = new AppMemory;
  return *pinned;
}

AppMemory& AppMemory::Managed() {
  static AppMemory* const managed = new AppMemory;
  return *managed;
}

void AppMemory::Add(std::uint64_t address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  std::size_t& size_bytes = sizes_[address];
  const std::size_t now_bytes = this->now_bytes() - size_bytes + bytes;
  size_bytes = bytes;
  now_bytes_.store(now_bytes, std::memory_order_relaxed);
  peak_bytes_.store(std::max(peak_bytes(), now_bytes), std::memory_order_relaxed);
}

bool AppMemory::Remove(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto at = sizes_.find(address);
  if (at == sizes_.end()) return false;
  now_bytes_.store(now_bytes() - at->second, std::memory_order_relaxed);
  sizes_.erase(at);
  return true;
}

}  // namespace spillway::interposer
