// What is allocated: finds the allocation that an address lies in.
//
// Find is called by every hook that sees device addresses, on any thread, without a lock. The
// others are called with the state lock held. Owns nothing: allocations belong to execute, which
// adds them when they are born and removes them when they are freed, and which never gives the
// memory of an Allocation or a SlabPlan back: a Find that is under way may still answer one that
// was removed a moment ago.
//
// Note [Beside an allocation]
// A kernel may be given the end of an array to count down from (reverse iterators), or a place
// before its beginning (arrays that count from one). Each range has a granule behind it that
// belongs to nobody (address_arena.h, invariant 1): an address there, in no allocation, stands for
// the allocations on both sides. One that is farther away cannot be told.
//
// Invariants
//  1. Each granule (2 MiB) of address space belongs to at most one range or one slab
//  (address_arena.h, invariant 1).
//     Ranges and slabs are whole granules, a slab is one.
//  2. Find answers the allocation in which an address lies, or null; one past the end is null.
// Cost: two dependent loads for an address that is ours, one for most that are not.
// Never: looks at residency.
#pragma once

#include <array>
#include <atomic>

#include "base/inline_vector.h"
#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// A slab as the ledger sees it: blocks of one size, from `base`.
struct SlabPlan {
  CUdeviceptr base = 0;
  size_t block_bytes = 0;
  size_t block_count = 0;
  const std::atomic<Allocation*>* blocks = nullptr;  // null entry: block is free
};

class Ledger {
 public:
  Ledger() = default;
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // A cheap first look: false for words that can be no managed address, nor one beside managed
  // memory.
  bool MightBeManaged(CUdeviceptr word) const {
    return word >= lowest_.load(std::memory_order_relaxed) &&
           word < highest_.load(std::memory_order_relaxed);
  }

  // What MightBeManaged compares with: lowest <= word < highest.
  CUdeviceptr lowest() const { return lowest_.load(std::memory_order_relaxed); }
  CUdeviceptr highest() const { return highest_.load(std::memory_order_relaxed); }

  // An address in each allocation that begins or ends within a granule of `address`, if that lies
  // in none.
  base::InlineVector<CUdeviceptr, 2> Beside(CUdeviceptr address) const {
    base::InlineVector<CUdeviceptr, 2> found;
    if (Find(address)) return found;
    for (const CUdeviceptr beside : {address - kGranuleBytes, address + kGranuleBytes}) {
      if (Find(beside)) found.push_back(beside);
    }
    return found;
  }

  // The address lies in an allocation, or beside one.
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
  using Entry = std::uintptr_t;  // Allocation* or SlabPlan* with kSlabBit
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
