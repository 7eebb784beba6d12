// Memory that the program has from the driver and that is none of the device's: pinned host memory,
// and managed memory, which the driver moves by itself. Counted for the report.
//
// Called by the hooks of host and managed memory on any thread, by the report at exit. One for the
// process, never destroyed. Synchronises itself; its lock is a leaf, and the figures are read
// without it.
//
// Never: calls the driver; counts what Spillway itself has pinned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"

namespace spillway::interposer {

class AppMemory {
 public:
  static AppMemory& Pinned();
  static AppMemory& Managed();

  // A name that is there already has a new size from now on.
  void Add(std::uint64_t address, std::size_t bytes);
  // True when it was there.
  bool Remove(std::uint64_t address);

  std::size_t now_bytes() const { return now_bytes_.load(std::memory_order_relaxed); }
  std::size_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  // Synchronises itself.
  std::atomic<std::size_t> now_bytes_{0};
  std::atomic<std::size_t> peak_bytes_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  // Guarded by mutex_.
  std::unordered_map<std::uint64_t, std::size_t> sizes_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
