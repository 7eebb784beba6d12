// The device's virtual addresses: one inaccessible arena in this process, with ranges and blocks.
//
// Invariants
//  1. Bytes of the arena that are not mapped with access are PROT_NONE: touching them faults.
//  2. Mappings never overlap, and each lies inside one reserved range.
//  3. A reservation gets the lowest free address that fits, so the same calls give the same
//     addresses if the arena lies at its usual place.
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

struct Viewer {
  int device;
  unsigned peers;
};

// kPeers includes devices with enabled peer access; kNamed has only devices named one by one.
enum class Audience { kPeers, kNamed };

struct Mapping {
  std::uintptr_t base;
  std::size_t size_bytes;
  PhysicalRef block;
  Audience audience;
  Access access = Access::kNone;       // the highest of any device
  Access host_access = Access::kNone;  // of the processor, for blocks on the host
  std::array<Access, kMostDevices> by_device{};

  bool IsReachableBy(const Viewer& viewer) const;
};

class AddressSpace {
 public:
  explicit AddressSpace(int device_count = 1);

  int device_count() const { return device_count_; }

  // At `hint` if it is free, else at the lowest free address; 0 when none fits.
  std::uintptr_t Reserve(std::size_t size_bytes, std::size_t alignment_bytes, std::uintptr_t hint);
  void Free(std::uintptr_t base, std::size_t size_bytes);

  // Shows the first `size_bytes` of `block` to its device (a host block: to all).
  void Map(std::uintptr_t base, std::size_t size_bytes, const PhysicalRef& block, Access access,
           Audience audience = Audience::kNamed);
  void SetDeviceAccess(std::uintptr_t base, Access access, int device = 0);
  void SetHostAccess(std::uintptr_t base, Access access);
  void Unmap(std::uintptr_t base);

  // Other mappings of the bytes stay, and so does the processor's access, which other threads may
  // be using.
  void Withhold(std::uintptr_t base, std::size_t size_bytes);
  void GiveBack(std::uintptr_t base, std::size_t size_bytes);

  // Memory that `viewer` may not reach becomes inaccessible.
  void ShowOnlyTo(const Viewer& viewer);
  void ShowToAll();

  bool Contains(std::uintptr_t address) const { return address - arena_ < arena_bytes_; }
  const Mapping* Find(std::uintptr_t address) const;
  const Mapping* FindFrom(std::uintptr_t address) const;
  bool IsFreeOfMappings(std::uintptr_t base, std::size_t size_bytes) const;
  // 0: all may be accessed. Only for the arena.
  std::uintptr_t FirstForbidden(std::uintptr_t base, std::size_t size_bytes, bool write) const;

 private:
  static Access Visible(const Mapping& mapping);
  static void SetVisibility(Mapping& mapping, Access device, Access host);
  static bool OnlyDevicesSee(const Mapping& mapping);
  static void GiveBackPart(const Mapping& mapping, std::uintptr_t base, std::size_t size_bytes);
  // For each part of the range that only the device sees.
  template <class Action>
  void ForWithholdable(std::uintptr_t base, std::size_t size_bytes, Action action) const;

  const int device_count_;
  std::uintptr_t arena_ = 0;
  std::size_t arena_bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> free_;
  std::map<std::uintptr_t, Mapping> mappings_;
  std::vector<std::uintptr_t> hidden_;  // from the present viewer
};

}  // namespace spillway::simulator
