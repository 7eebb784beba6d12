// Managed allocations with what execute knows of them: where the bytes are, who uses them, what new users must await.
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/host_pool.h"
#include "interposer/execute/timeline.h"
#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// What every new user of an allocation's memory must wait for on the device: the copy that restores it, or the work
// that used the same memory before it was freed.
struct Tracked : Allocation {
  UseList ready_after;
  std::vector<std::uint64_t> ordered;  // serials of streams that already wait for all of ready_after
};

struct SlabBlock : Tracked {
  struct Slab* slab = nullptr;
};

enum class Place : std::uint8_t {
  kNowhere,  // no memory yet: allocated, never used
  kDevice,   // mapped; all chunks present
  kLeaving,  // mapped, on its way out: unmapped when `departure` is done, unless touched before
  kHost,     // unmapped; the bytes are in `host`
};

struct Range : Tracked {
  Place place = Place::kNowhere;
  Chunks chunks;            // when mapped
  HostBuffer host;          // when it has a host copy, or one is being made
  UseList uses;             // work enqueued on it since it was last known to be idle
  UseList departure;        // when leaving: what must complete before it is unmapped
  bool host_valid = false;  // on the device, and `host` still holds the same bytes
  bool live = true;         // not freed by the application
  int pins = 0;             // application calls in progress that name it
  std::uint64_t last_touch = 0;
  size_t position = 0;  // in residency's list of ranges
};

}  // namespace spillway::interposer
