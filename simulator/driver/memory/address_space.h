// The device's virtual addresses: one large inaccessible arena of this process, ranges reserved in
// it, blocks mapped there.
//
// Used by: vmm, allocator, pool, managed memory (to map), copies and launches (to check). All under
// the engine's mutex.
//
// Invariants
//  1. Every byte of the arena that is not mapped with access faults when touched: it is PROT_NONE.
//  2. Mappings never overlap, and each lies inside one reserved range.
//  3. The lowest free address that fits is taken: the same calls give the same addresses, if the
//  arena lies at its
//     usual place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "simulator/driver/memory/physical_memory.h"

namespace spillway::simulator {

enum class Access { kNone, kRead, kReadWrite };

inline constexpr int kMostDevices = 8;

// Who touches memory: a device, and the devices (bit n: device n) whose ordinary allocations its
// context may use.
struct Viewer {
  int device;
  unsigned peers;
};

// Whom a mapping is for: peers of the device too once their contexts have enabled that, or those
// named one by one.
enum class Audience { kPeers, kNamed };

struct Mapping {
  std::uintptr_t base;
  std::size_t size_bytes;
  PhysicalRef block;
  Audience audience;
  Access access = Access::kNone;       // the most that any device has
  Access host_access = Access::kNone;  // the processor's, for blocks on the host
  std::array<Access, kMostDevices> by_device{};

  bool IsReachableBy(const Viewer& viewer) const;
};

class AddressSpace {
 public:
  explicit AddressSpace(int device_count = 1);

  int device_count() const { return device_count_; }

  // Reserves a range, at `hint` if that is free, else at the lowest free address. Returns 0 when
  // there is none.
  std::uintptr_t Reserve(std::size_t size_bytes, std::size_t alignment_bytes, std::uintptr_t hint);
  void Free(std::uintptr_t base, std::size_t size_bytes);

  // Maps the first `size_bytes` of `block` for the block's own device (blocks on the host: for
  // all); the place must be free of mappings.
  void Map(std::uintptr_t base, std::size_t size_bytes, const PhysicalRef& block, Access access,
           Audience audience = Audience::kNamed);
  // These take the address where a mapping starts.
  void SetDeviceAccess(std::uintptr_t base, Access access, int device = 0);
  void SetHostAccess(std::uintptr_t base, Access access);
  void Unmap(std::uintptr_t base);

  // Makes whatever is mapped in the range inaccessible there, and accessible again as it was. The
  // same bytes mapped elsewhere stay as they are; so does what the processor may see here, since
  // other threads may be using it.
  void Withhold(std::uintptr_t base, std::size_t size_bytes);
  void GiveBack(std::uintptr_t base, std::size_t size_bytes);

  // Makes inaccessible what `viewer` may not reach, and accessible again.
  void ShowOnlyTo(const Viewer& viewer);
  void ShowToAll();

  bool Contains(std::uintptr_t address) const { return address - arena_ < arena_bytes_; }
  // The mapping that holds `address`, or null.
  const Mapping* Find(std::uintptr_t address) const;
  // The first mapping that starts at or after `address`, or null.
  const Mapping* FindFrom(std::uintptr_t address) const;
  bool IsFreeOfMappings(std::uintptr_t base, std::size_t size_bytes) const;
  // The first byte of the range that may not be read (or written), or 0 when all may. For addresses
  // in the arena.
  std::uintptr_t FirstForbidden(std::uintptr_t base, std::size_t size_bytes, bool write) const;

 private:
  static Access Visible(const Mapping& mapping);
  static void SetVisibility(Mapping& mapping, Access device, Access host);
  static bool OnlyDevicesSee(const Mapping& mapping);
  static void GiveBackPart(const Mapping& mapping, std::uintptr_t base, std::size_t size_bytes);
  // Calls action(base, size_bytes, mapping) for each part of the range that only the device sees.
  template <class Action>
  void ForWithholdable(std::uintptr_t base, std::size_t size_bytes, Action action) const;

  const int device_count_;
  std::uintptr_t arena_ = 0;
  std::size_t arena_bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> free_;
  std::map<std::uintptr_t, Mapping> mappings_;
  std::vector<std::uintptr_t> hidden_;  // mappings out of reach for the present viewer
};

}  // namespace spillway::simulator
