// The kernel libraries that the program has loaded, with their device variables' names, and what
// the kernels of modules and libraries depend on. Variables' addresses differ by context, so they
// are queried when needed.
//
// Synchronises itself; its lock is a leaf.
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
  std::uint64_t number;  // ascending, never reused
  CUlibrary handle;
  std::vector<std::string> variables;
};

// What may change what a kernel does, beside its parameters and the memory that these lead to.
enum class DependsOn : std::uint8_t {
  kAnything,  // variables, or what nobody could read
  kConstants,
  kNothingElse
};

class Libraries {
 public:
  static Libraries& Instance();

  void Add(CUlibrary handle, std::vector<std::string> variables);
  // Also of a module.
  bool Remove(const void* handle);
  // Of all kernels of a module or library. Without a note: anything.
  void Note(const void* handle, DependsOn what);
  // Asks the driver for the function's module or library.
  DependsOn WhatMatters(CUfunction function);
  std::vector<LoadedLibrary> Behind(std::uint64_t number);
  bool AnyBehind(std::uint64_t number) const {
    return last_.load(std::memory_order_relaxed) > number;
  }

  void NoteUnreadable() { unreadable_.fetch_add(1, std::memory_order_relaxed); }
  std::size_t unreadable() const { return unreadable_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> last_{0};
  std::atomic<std::size_t> unreadable_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  std::vector<LoadedLibrary> loaded_ SPILLWAY_GUARDED_BY(mutex_);
  struct Known {
    const void* handle;
    DependsOn what;
  };
  std::vector<Known> known_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
