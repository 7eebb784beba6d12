// One device allocation of the application, as a fact: where it is, how large, of what kind, and
// whether its bytes may move. Where the bytes are right now is not known here (execute/range.h adds
// that).
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

enum class AllocationKind : std::uint8_t {
  kRange,      // own address range over movable chunks
  kSlabBlock,  // small: a part of a slab that is always resident
};

// Why memory stays where it is.
enum class Unmovable : std::uint8_t {
  kNo,
  kSmall,         // shares a slab with others
  kTexture,       // a texture reads it, by a handle that may be anywhere
  kShared,        // other processes may have it open
  kPeers,         // another device may access it without our knowing
  kOwnMapping,    // the program's own virtual memory
  kDriverServed,  // the driver's allocation: of another context, or what is no plain memory
};
// For the report, in that order.
inline constexpr const char* kUnmovableNames[] = {"none",  "small",       "texture",      "shared",
                                                  "peers", "own_mapping", "driver_served"};

struct Allocation {
  CUdeviceptr base = 0;
  size_t size_bytes = 0;       // what it occupies, whole granules for a range
  size_t requested_bytes = 0;  // what the application asked for
  std::uint64_t id = 0;        // no other allocation's of the process
  AllocationKind kind = AllocationKind::kRange;
  Unmovable unmovable = Unmovable::kNo;
};

}  // namespace spillway::interposer
