#include "interposer/ledger/ledger.h"

#include <algorithm>

namespace spillway::interposer {

void Ledger::AddRange(Allocation* range) {
  Fill(range->base, range->size_bytes, reinterpret_cast<Entry>(range));
}

void Ledger::RemoveRange(const Allocation* range) { Fill(range->base, range->size_bytes, 0); }

void Ledger::AddSlab(const SlabPlan* slab) {
  Fill(slab->base, slab->block_bytes * slab->block_count, reinterpret_cast<Entry>(slab) | kSlabBit);
}

void Ledger::RemoveSlab(const SlabPlan* slab) { Fill(slab->base, slab->block_bytes * slab->block_count, 0); }

Allocation* Ledger::FindInSlab(Entry entry, CUdeviceptr address) {
  const auto* slab = reinterpret_cast<const SlabPlan*>(entry & ~kSlabBit);
  const size_t index = (address - slab->base) / slab->block_bytes;
  return index < slab->block_count ? slab->blocks[index] : nullptr;
}

void Ledger::Fill(CUdeviceptr base, size_t bytes, Entry entry) {
  lowest_ = std::min(lowest_.load(), base);
  highest_ = std::max(highest_.load(), base + bytes);
  const CUdeviceptr last = (base + bytes - 1) >> kGranuleShift;
  for (CUdeviceptr granule = base >> kGranuleShift; granule <= last; ++granule) {
    std::unique_ptr<Leaf>& leaf = leaves_[granule >> (kLeafShift - kGranuleShift)];
    if (!leaf) leaf = std::make_unique<Leaf>();
    leaf->entries[granule & (kLeafEntries - 1)] = entry;
  }
}

}  // namespace spillway::interposer
