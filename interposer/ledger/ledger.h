// Finds the allocation that an address lies in.
//
// Find is called on any thread without a lock; all else needs the state lock. execute owns the
// allocations, adds them, and removes them at their free. It never deletes an Allocation or a
// SlabPlan, because a concurrent Find may still return it.
//
// Note [Beside an allocation]
// A kernel may receive the end of an array to count down from (reverse iterators), or a place
// before its begin (arrays that count from one). The granule behind each range is unused
// (address_arena.h, invariant 1). An address there stands for the allocations on both sides. One
// farther away cannot be attributed.
// Invariants
//  1. Each granule (2 MiB) of address space belongs to at most one range or slab (address_arena.h,
//     invariant 1). Ranges and slabs are whole granules; a slab is one.
//  2. Find returns the allocation that contains the address, or null. One past the end is null.
// Cost: two dependent loads for an address of ours, one for most others. Never: checks residency.
#pragma once

#include <array>
#include <atomic>

#include "base/inline_vector.h"
#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// A slab: blocks of one size, from `base`.
struct SlabPlan {
  CUdeviceptr base = 0;
  size_t block_bytes = 0;
  size_t block_count = 0;
  const std::atomic<Allocation*>* blocks = nullptr;  // null entry: free block
};

class Ledger {
 public:
  Ledger() = default;
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  bool MightBeManaged(CUdeviceptr word) const {
    return word >= lowest_.load(std::memory_order_relaxed) &&
           word < highest_.load(std::memory_order_relaxed);
  }

  CUdeviceptr lowest() const { return lowest_.load(std::memory_order_relaxed); }
  CUdeviceptr highest() const { return highest_.load(std::memory_order_relaxed); }

  // For an address in no allocation: one in each allocation within a granule.
  base::InlineVector<CUdeviceptr, 2> Beside(CUdeviceptr address) const {
    base::InlineVector<CUdeviceptr, 2> found;
    if (Find(address)) return found;
    for (const CUdeviceptr beside : {address - kGranuleBytes, address + kGranuleBytes}) {
      if (Find(beside)) found.push_back(beside);
    }
    return found;
  }

  bool LeadsToAny(CUdeviceptr address) const { return Find(address) || !Beside(address).empty(); }

  void AddRange(Allocation* range);
  void RemoveRange(const Allocation* range);
  void AddSlab(const SlabPlan* slab);
  void RemoveSlab(const SlabPlan* slab);

  Allocation* Find(CUdeviceptr address) const {
    if (address >> kAddressBits) return nullptr;
    const Leaf* leaf = leaves_[address >> kLeafShift].load(std::memory_order_acquire);
    if (!leaf) return nullptr;
    const Entry entry = leaf->entries[(address >> kGranuleShift) & (kLeafEntries - 1)].load(
        std::memory_order_acquire);
    return entry & kSlabBit ? FindInSlab(entry, address) : reinterpret_cast<Allocation*>(entry);
  }

 private:
  using Entry = std::uintptr_t;
  static constexpr int kAddressBits = 48;
  static constexpr int kGranuleShift = 21;
  static constexpr CUdeviceptr kGranuleBytes = CUdeviceptr{1} << kGranuleShift;
  static constexpr CUdeviceptr kInGranule = kGranuleBytes - 1;
  static constexpr int kLeafShift = 36;  // one leaf covers 64 GiB
  static constexpr size_t kLeafEntries = size_t{1} << (kLeafShift - kGranuleShift);
  static constexpr Entry kSlabBit = 1;

  struct Leaf {
    std::array<std::atomic<Entry>, kLeafEntries> entries{};
  };

  static Allocation* FindInSlab(Entry entry, CUdeviceptr address) {
    const auto* slab = reinterpret_cast<const SlabPlan*>(entry & ~kSlabBit);
    const size_t index = (address & kInGranule) / slab->block_bytes;
    return index < slab->block_count ? slab->blocks[index].load(std::memory_order_acquire)
                                     : nullptr;
  }
  void Fill(CUdeviceptr base, size_t bytes, Entry entry);

  std::atomic<CUdeviceptr> lowest_{~CUdeviceptr{0}};
  std::atomic<CUdeviceptr> highest_{0};
  std::array<std::atomic<Leaf*>, size_t{1} << (kAddressBits - kLeafShift)> leaves_{};
};

}  // namespace spillway::interposer
