// Small allocations: blocks of one size in slabs of one granule, which stay on the device.
//
// Invariants
//  1. Blocks start at multiples of 512 bytes.
//  2. A freed block is handed out again with the work enqueued before its free as `ready_after`.
//  3. A slab without live blocks whose work is complete can be given back. Its objects then serve
//     the next slab of the size class: a call may hold one without a lock (ledger.h).
// Never: evicts to get memory. The caller brings a mapped granule when NeedsSlab says so.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>

#include "interposer/execute/state/range.h"
#include "interposer/ledger/ledger.h"

namespace spillway::interposer {

inline constexpr size_t kSmallBytes = kMiB;  // requests below this share slabs

struct Slab {
  SlabPlan plan;
  Chunks chunks;
  size_t size_class = 0;
  size_t live_blocks = 0;
  std::unique_ptr<std::atomic<Allocation*>[]> index;  // live blocks by position
  std::vector<std::unique_ptr<SlabBlock>> blocks;
};

class Slabs {
 public:
  Slabs(Ledger* ledger, Timeline* timeline) : ledger_(ledger), timeline_(timeline) {}

  static size_t ClassOf(size_t bytes);
  template <class Visit>
  void ForEachSlab(Visit visit) const {
    for (const auto& slab : slabs_) visit(slab->plan.base);
  }
  template <class Visit>
  void ForEachBlock(Visit visit) const {
    for (const auto& slab : slabs_) {
      for (size_t i = 0; i < slab->plan.block_count; ++i) {
        if (const Allocation* const block = slab->index[i].load()) visit(block);
      }
    }
  }
  bool NeedsSlab(size_t bytes) const { return free_[ClassOf(bytes)].empty(); }
  // All users of the memory must wait for `ready_after`.
  void AddSlab(size_t bytes, CUdeviceptr base, Chunks chunks, const UseList& ready_after);
  SlabBlock* Take(size_t bytes);
  void Give(SlabBlock* block, const UseList& busy);

  // As RangeUses::MayBeUsedOn, for a call on the stream `own`. Ask often: a stream that named the
  // block since the last question may use it with all its work until now.
  bool MayBeUsedOn(SlabBlock* block, const UseList& streams, const StreamState* own);

  size_t EmptyBytes() const;
  // The first completion that an empty slab waits for; null stream when there is none.
  Use NextToAwait();
  // Null: none. The caller gives back its address and chunks.
  Slab* TakeEmpty();
  Slab* TakeAny();

 private:
  // Blocks per granule. A block is the largest multiple of 512 bytes of which that many fit.
  static constexpr std::array<size_t, 22> kPerGranule = {
      2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096};
  static constexpr size_t BlockBytes(size_t size_class) {
    return kGranuleBytes / kPerGranule[size_class] / 512 * 512;
  }
  bool Idle(Slab* slab);
  std::unique_ptr<Slab> NewSlab(size_t size_class);
  Slab* TakeOut(size_t position);

  Ledger* const ledger_;
  Timeline* const timeline_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::array<std::vector<std::unique_ptr<Slab>>, kPerGranule.size()> idle_objects_;
  std::array<std::deque<SlabBlock*>, kPerGranule.size()> free_;  // oldest free first
};

}  // namespace spillway::interposer
