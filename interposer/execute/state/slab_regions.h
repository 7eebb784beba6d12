// Slabs of the node's pool as pinned memory: mapped, known to the driver, cut into buffers.
//
// Owns the mappings, not the slabs.
//
// A region is one slab, or as many as a buffer needs, mapped one behind the other. Slabs are files,
// registered as one, or memory of the driver's, which it knows already.
//
// Invariants
//  1. A slab goes back only when no buffer lies in it, unregistered and unmapped.
//  2. A forked child does not inherit the mappings. Otherwise it would keep the slab from ending.
// Errors: slabs that cannot be mapped or registered go back, and no more are asked for.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "interposer/lease/host_slabs.h"

namespace spillway::interposer {

class SlabRegions {
 public:
  explicit SlabRegions(int device) : device_(device) {}

  // Null when mapped slabs have no room.
  std::byte* Take(std::size_t bytes);
  // Maps slabs for a buffer of that size, if they have come and are at most `most_bytes`.
  bool MapFor(std::size_t bytes, std::size_t most_bytes);
  // Slabs before a buffer needs them, in three steps. Only the second takes time, and it needs no
  // lock.
  struct Coming {
    int device = 0;
    std::vector<HostSlab> slabs;  // none: they have not come
    std::byte* begin = nullptr;   // null: not mapped
  };
  // A region of that size or, once all slabs have come, the rest.
  Coming TakeSlabsAhead(std::size_t region_bytes);
  static void Map(Coming* coming);
  bool Add(const Coming& coming);
  void Give(void* buffer, std::size_t bytes);
  bool Owns(const void* buffer) const { return Find(buffer) != regions_.end(); }
  bool HasRoom(std::size_t bytes) const;

  // For no more once the driver has refused a slab.
  void SetGoal(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }
  void ReleaseEmpty(std::size_t bytes);

 private:
  struct Region {
    std::size_t bytes = 0;
    bool is_drivers = false;
    std::vector<protocol::SlabName> names;
    std::map<std::size_t, std::size_t> free;  // sizes by offset, never adjacent
  };
  using Regions = std::map<std::byte*, Region>;

  Coming Come(std::vector<HostSlab> slabs);
  Regions::const_iterator Find(const void* buffer) const;
  Regions::iterator Release(Regions::iterator region);

  const int device_;
  Regions regions_;
  std::size_t bytes_ = 0;
  bool refused_ = false;
};

}  // namespace spillway::interposer
