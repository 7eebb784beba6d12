// Driver-served device memory of the program that counts against the budget.
//
// An entry lives from the driver's allocation until its free, or the end of its context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class PassedThrough {
 public:
  // `key`: its address or handle. Returns the bytes of a former entry with the key, which the
  // driver may reuse before that entry's end is noted.
  size_t Add(std::uint64_t key, size_t bytes, CUcontext context);
  size_t Remove(std::uint64_t key);
  size_t RemoveAllIn(CUcontext context);

 private:
  struct Entry {
    size_t bytes;
    CUcontext context;
  };
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace spillway::interposer
