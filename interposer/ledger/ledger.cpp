#include "interposer/ledger/ledger.h"

#include <algorithm>

namespace spillway::interposer {

Ledger::~Ledger() {
  for (auto& leaf : leaves_) delete leaf.load();
}

void Ledger::AddRange(Allocation* range) {
  Fill(range->base, range->size_bytes, reinterpret_cast<Entry>(range));
}

void Ledger::RemoveRange(const Allocation* range) { Fill(range->base, range->size_bytes, 0); }

void Ledger::AddSlab(const SlabPlan* slab) {
  Fill(slab->base, slab->block_bytes * slab->block_count, reinterpret_cast<Entry>(slab) | kSlabBit);
}

void Ledger::RemoveSlab(const SlabPlan* slab) {
  Fill(slab->base, slab->block_bytes * slab->block_count, 0);
}

void Ledger::Fill(CUdeviceptr base, size_t bytes, Entry entry) {
  lowest_ = std::min(lowest_.load(), base - kGranuleBytes);
  highest_ = std::max(highest_.load(), base + bytes + kGranuleBytes);
  const CUdeviceptr last = (base + bytes - 1) >> kGranuleShift;
  for (CUdeviceptr granule = base >> kGranuleShift; granule <= last; ++granule) {
    std::atomic<Leaf*>& leaf = leaves_[granule >> (kLeafShift - kGranuleShift)];
    if (!leaf.load()) leaf.store(new Leaf, std::memory_order_release);
    leaf.load()->entries[granule & (kLeafEntries - 1)].store(entry, std::memory_order_release);
  }
}

}  // namespace spillway::interposer
