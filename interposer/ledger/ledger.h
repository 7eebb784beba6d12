// What is allocated: finds the allocation that an address lies in.
//
// Called by every hook that sees device addresses, with the state lock held. Owns nothing: allocations belong to
// execute, which adds them when they are born and removes them when they are freed.
//
// Invariants
//  1. Each granule (2 MiB) of address space belongs to at most one range or one slab (address_arena.h, invariant 1).
//  2. Find answers the allocation in which an address lies, or null; one past the end is null.
// Cost: two dependent loads for an address that is ours, one for most that are not.
// Never: looks at residency.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// A slab as the ledger sees it: blocks of one size, from `base`.
struct SlabPlan {
  CUdeviceptr base = 0;
  size_t block_bytes = 0;
  size_t block_count = 0;
  Allocation* const* blocks = nullptr;  // null entry: block is free
};

class Ledger {
 public:
  // A cheap first look, with no lock: false for words that can be no managed address.
  bool MightBeManaged(CUdeviceptr word) const {
    return word >= lowest_.load(std::memory_order_relaxed) && word < highest_.load(std::memory_order_relaxed);
  }

  void AddRange(Allocation* range);
  void RemoveRange(const Allocation* range);
  void AddSlab(const SlabPlan* slab);
  void RemoveSlab(const SlabPlan* slab);

  Allocation* Find(CUdeviceptr address) const {
    if (address >> kAddressBits) return nullptr;
    const Leaf* leaf = leaves_[address >> kLeafShift].get();
    if (!leaf) return nullptr;
    const Entry entry = leaf->entries[(address >> kGranuleShift) & (kLeafEntries - 1)];
    if (!entry) return nullptr;
    return entry & kSlabBit ? FindInSlab(entry, address) : FindInRange(entry, address);
  }

 private:
  using Entry = std::uintptr_t;  // Allocation* or SlabPlan* with kSlabBit
  static constexpr int kAddressBits = 48;
  static constexpr int kGranuleShift = 21;
  static constexpr int kLeafShift = 36;  // one leaf covers 64 GiB
  static constexpr size_t kLeafEntries = size_t{1} << (kLeafShift - kGranuleShift);
  static constexpr Entry kSlabBit = 1;

  struct Leaf {
    std::array<Entry, kLeafEntries> entries{};
  };

  static Allocation* FindInRange(Entry entry, CUdeviceptr address) {
    auto* range = reinterpret_cast<Allocation*>(entry);
    return address - range->base < range->size_bytes ? range : nullptr;
  }
  static Allocation* FindInSlab(Entry entry, CUdeviceptr address);
  void Fill(CUdeviceptr base, size_t bytes, Entry entry);

  std::atomic<CUdeviceptr> lowest_{~CUdeviceptr{0}};
  std::atomic<CUdeviceptr> highest_{0};
  std::array<std::unique_ptr<Leaf>, size_t{1} << (kAddressBits - kLeafShift)> leaves_;
};

}  // namespace spillway::interposer
