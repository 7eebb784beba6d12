// Device memory that the driver serves to the application and that counts against the budget: what,
// how much, whose.
//
// Called by Charges with the state lock held. Owns nothing; an entry lives from the driver's
// allocation until its free, or the end of its context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class PassedThrough {
 public:
  // `key` names it: its address or its handle. Answers the bytes that the entry of that name had
  // before: the driver gives a name out anew as soon as it is free, which may be before its end is
  // noted here.
  size_t Add(std::uint64_t key, size_t bytes, CUcontext context);
  // The bytes that end with it; 0 when there is no such entry.
  size_t Remove(std::uint64_t key);
  // The bytes of all that end with the context.
  size_t RemoveAllIn(CUcontext context);

 private:
  struct Entry {
    size_t bytes;
    CUcontext context;
  };
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace spillway::interposer
