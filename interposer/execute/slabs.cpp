#include "interposer/execute/slabs.h"

#include <algorithm>

namespace spillway::interposer {

// The class with the smallest block that holds `bytes`.
size_t Slabs::ClassOf(size_t bytes) {
  size_t best = 0;
  for (size_t i = 1; i < kPerGranule.size() && BlockBytes(i) >= bytes; ++i) best = i;
  return best;
}

void Slabs::AddSlab(size_t bytes, CUdeviceptr base, Chunks chunks) {
  auto slab = std::make_unique<Slab>();
  slab->size_class = ClassOf(bytes);
  const size_t count = kPerGranule[slab->size_class];
  const size_t block_bytes = BlockBytes(slab->size_class);
  slab->chunks = std::move(chunks);
  slab->index.assign(count, nullptr);
  slab->plan = {base, block_bytes, count, slab->index.data()};
  for (size_t i = 0; i < count; ++i) {
    auto block = std::make_unique<SlabBlock>();
    block->base = base + i * block_bytes;
    block->size_bytes = block_bytes;
    block->kind = AllocationKind::kSlabBlock;
    block->unmovable = Unmovable::kSmall;
    block->slab = slab.get();
    free_[slab->size_class].push_back(block.get());
    slab->blocks.push_back(std::move(block));
  }
  ledger_->AddSlab(&slab->plan);
  slabs_.push_back(std::move(slab));
}

SlabBlock* Slabs::Take(size_t bytes) {
  auto& free = free_[ClassOf(bytes)];
  SlabBlock* block = free.front();
  free.pop_front();
  block->requested_bytes = bytes;
  Slab* slab = block->slab;
  slab->index[(block->base - slab->plan.base) / slab->plan.block_bytes] = block;
  ++slab->live_blocks;
  return block;
}

void Slabs::Give(SlabBlock* block, const UseList& busy) {
  Slab* slab = block->slab;
  block->ready_after.Merge(busy);
  block->ordered.clear();
  slab->index[(block->base - slab->plan.base) / slab->plan.block_bytes] = nullptr;
  --slab->live_blocks;
  free_[slab->size_class].push_back(block);
}

bool Slabs::Idle(Slab* slab) {
  return std::all_of(slab->blocks.begin(), slab->blocks.end(),
                     [this](const auto& block) { return timeline_->AllDone(&block->ready_after); });
}

Use Slabs::NextToAwait() {
  for (const auto& slab : slabs_) {
    if (slab->live_blocks) continue;
    for (const auto& block : slab->blocks) {
      if (!timeline_->AllDone(&block->ready_after)) return block->ready_after.items().front();
    }
  }
  return {};
}

std::unique_ptr<Slab> Slabs::TakeEmpty() {
  for (auto& slab : slabs_) {
    if (slab->live_blocks || !Idle(slab.get())) continue;
    Forget(slab.get());
    std::unique_ptr<Slab> taken = std::move(slab);
    slab = std::move(slabs_.back());
    slabs_.pop_back();
    return taken;
  }
  return nullptr;
}

void Slabs::Forget(Slab* slab) {
  ledger_->RemoveSlab(&slab->plan);
  auto& free = free_[slab->size_class];
  free.erase(std::remove_if(free.begin(), free.end(), [slab](SlabBlock* b) { return b->slab == slab; }),
             free.end());
}

std::vector<std::unique_ptr<Slab>> Slabs::TakeAll() {
  for (auto& slab : slabs_) Forget(slab.get());
  return std::move(slabs_);
}

}  // namespace spillway::interposer
