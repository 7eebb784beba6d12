// Counts the program's pinned host memory and managed memory, which the driver moves, for the
// report.
//
// Synchronises itself; the figures are read without its lock, a leaf. Never: calls the driver;
// counts memory that Spillway has pinned.
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

  // A known address gets the new size.
  void Add(std::uint64_t address, std::size_t bytes);
  bool Remove(std::uint64_t address);

  std::size_t now_bytes() const { return now_bytes_.load(std::memory_order_relaxed); }
  std::size_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> now_bytes_{0};
  std::atomic<std::size_t> peak_bytes_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  std::unordered_map<std::uint64_t, std::size_t> sizes_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
