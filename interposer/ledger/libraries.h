// Libraries of kernels that the program has loaded, with the names of their device variables. A
// library has variables in each context that uses it, so their places are asked for where they are
// needed.
//
// Called by the hooks of loading and unloading and by jobs, on any thread. One for the process,
// never destroyed. Synchronises itself; its lock is a leaf.
//
// Never: calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

struct LoadedLibrary {
  std::uint64_t number;  // another one for each that was ever loaded, ascending
  CUlibrary handle;
  std::vector<std::string> variables;
};

class Libraries {
 public:
  static Libraries& Instance();

  // One without variables need not be known.
  void Add(CUlibrary handle, std::vector<std::string> variables);
  // True when it was known.
  bool Remove(const void* handle);
  // Those that were loaded behind the one of this number, and are loaded still.
  std::vector<LoadedLibrary> Behind(std::uint64_t number);
  bool AnyBehind(std::uint64_t number) const {
    return last_.load(std::memory_order_relaxed) > number;
  }

  // A module or library has variables that nobody lists (image_variables.h).
  void NoteUnreadable() { unreadable_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t unreadable() const { return unreadable_.load(std::memory_order_relaxed); }

 private:
  // Synchronises itself.
  std::atomic<std::uint64_t> last_{0};
  std::atomic<std::size_t> unreadable_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  // Guarded by mutex_.
  std::vector<LoadedLibrary> loaded_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
