// Facts about one device allocation of the program, without its residency.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

enum class AllocationKind : std::uint8_t {
  kRange,      // own address range over movable chunks
  kSlabBlock,  // small: a part of a slab that is always resident
};

enum class Unmovable : std::uint8_t {
  kNo,
  kSmall,         // shares a slab with others
  kTexture,       // a texture reads it; its handle may be anywhere
  kShared,        // other processes may have it open
  kPeers,         // another device may access it unseen
  kOwnMapping,    // the program's own virtual memory
  kDriverServed,  // the driver's: in another context, or not plain memory
};
inline constexpr const char* kUnmovableNames[] = {"none",  "small",       "texture",      "shared",
                                                  "peers", "own_mapping", "driver_served"};

struct Allocation {
  CUdeviceptr base = 0;
  size_t size_bytes = 0;  // occupied bytes: whole granules for a range
  size_t requested_bytes = 0;
  std::uint64_t id = 0;  // unique in the process
  AllocationKind kind = AllocationKind::kRange;
  Unmovable unmovable = Unmovable::kNo;
  bool is_mapping = false;  // at an address of the program's own (own_mappings.h)
};

}  // namespace spillway::interposer
