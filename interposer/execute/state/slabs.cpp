#include "interposer/execute/state/slabs.h"

#include <algorithm>

namespace spillway::interposer {

// The class with the smallest block that holds `bytes`. Blocks are multiples of 512 bytes.
size_t Slabs::ClassOf(size_t bytes) {
  static constexpr auto kClasses = [] {
    std::array<std::uint8_t, kSmallBytes / 512 + 1> classes{};
    for (size_t i = 1; i < kPerGranule.size(); ++i) {
      for (size_t units = 0; units <= BlockBytes(i) / 512; ++units)
        classes[units] = static_cast<std::uint8_t>(i);
    }
    return classes;
  }();
  return kClasses[(bytes + 511) / 512];
}

std::unique_ptr<Slab> Slabs::NewSlab(size_t size_class) {
  auto slab = std::make_unique<Slab>();
  const size_t count = kPerGranule[size_class];
  slab->size_class = size_class;
  slab->index = std::make_unique<std::atomic<Allocation*>[]>(count);
  slab->plan = {0, BlockBytes(size_class), count, slab->index.get()};
  for (size_t i = 0; i < count; ++i) {
    slab->blocks.push_back(std::make_unique<SlabBlock>());
    SlabBlock* const block = slab->blocks.back().get();
    block->size_bytes = slab->plan.block_bytes;
    block->kind = AllocationKind::kSlabBlock;
    block->unmovable = Unmovable::kSmall;
    block->slab = slab.get();
  }
  return slab;
}

void Slabs::AddSlab(size_t bytes, CUdeviceptr base, Chunks chunks, const UseList& ready_after) {
  const size_t size_class = ClassOf(bytes);
  auto& idle = idle_objects_[size_class];
  if (idle.empty()) idle.push_back(NewSlab(size_class));
  slabs_.push_back(std::move(idle.back()));
  idle.pop_back();
  Slab* const slab = slabs_.back().get();
  slab->chunks = std::move(chunks);
  slab->plan.base = base;
  for (size_t i = 0; i < slab->blocks.size(); ++i) {
    SlabBlock* const block = slab->blocks[i].get();
    block->base = base + i * slab->plan.block_bytes;
    block->ready_after.Merge(ready_after);
    block->ordered.clear();
    free_[size_class].push_back(block);
  }
  ledger_->AddSlab(&slab->plan);
}

SlabBlock* Slabs::Take(size_t bytes) {
  auto& free = free_[ClassOf(bytes)];
  SlabBlock* block = free.front();
  free.pop_front();
  block->requested_bytes = bytes;
  block->holds_addresses = false;
  Slab* slab = block->slab;
  slab->index[(block->base - slab->plan.base) / slab->plan.block_bytes] = block;
  ++slab->live_blocks;
  if (block->ready_after.empty()) block->fast_path.OpenForAll();
  return block;
}

void Slabs::Give(SlabBlock* block, const UseList& busy) {
  Slab* slab = block->slab;
  block->fast_path.Close();
  block->ready_after.Merge(busy);
  block->ordered.clear();
  slab->index[(block->base - slab->plan.base) / slab->plan.block_bytes] = nullptr;
  --slab->live_blocks;
  free_[slab->size_class].push_back(block);
}

bool Slabs::MayBeUsedOn(SlabBlock* block, const UseList& streams, const StreamState* own) {
  if (!block->users.MoveTo(&block->uses, own)) block->uses.Merge(timeline_->Unfinished());
  return timeline_->AnyOn(streams, block->uses);
}

bool Slabs::Idle(Slab* slab) {
  return std::all_of(slab->blocks.begin(), slab->blocks.end(),
                     [this](const auto& block) { return timeline_->AllDone(&block->ready_after); });
}

Use Slabs::NextToAwait() {
  for (const auto& slab : slabs_) {
    if (slab->live_blocks) continue;
    for (const auto& block : slab->blocks) {
      const Use next = timeline_->OneToAwait(&block->ready_after);
      if (next.stream) return next;
    }
  }
  return {};
}

size_t Slabs::EmptyBytes() const {
  size_t bytes = 0;
  for (const auto& slab : slabs_) bytes += slab->live_blocks ? 0 : kGranuleBytes;
  return bytes;
}

Slab* Slabs::TakeEmpty() {
  for (size_t i = 0; i < slabs_.size(); ++i) {
    if (!slabs_[i]->live_blocks && Idle(slabs_[i].get())) return TakeOut(i);
  }
  return nullptr;
}

Slab* Slabs::TakeAny() { return slabs_.empty() ? nullptr : TakeOut(slabs_.size() - 1); }

Slab* Slabs::TakeOut(size_t position) {
  std::swap(slabs_[position], slabs_.back());
  auto& idle = idle_objects_[slabs_.back()->size_class];
  idle.push_back(std::move(slabs_.back()));
  slabs_.pop_back();
  Slab* const slab = idle.back().get();
  ledger_->RemoveSlab(&slab->plan);
  auto& free = free_[slab->size_class];
  free.erase(
      std::remove_if(free.begin(), free.end(), [slab](SlabBlock* b) { return b->slab == slab; }),
      free.end());
  return slab;
}

}  // namespace spillway::interposer
