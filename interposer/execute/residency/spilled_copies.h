// Host copies of evicted ranges in the job's file, instead of in host memory.
//
// Called by HostCopies, and by Spilling around its I/O, with the state lock held.
//
// Note [Claims]
// I/O is done without the lock, and the job goes on meanwhile. A range is stored in steps: each
// copies one block out of its host copy under the lock, and writes it without. Whatever may change
// or move the host copy ends the claim (Range::spill_claim), and the store is in vain. A load reads
// into a buffer of its own; it is in vain if the range has got its bytes otherwise.
//
// Invariants
//  1. A range has `spilled` only while it has no host buffer: on the host, or empty on the device.
//  2. Blocks belong to one range, or to one store under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/host_pool.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/state/spill_file.h"

namespace spillway::interposer {

class SpilledCopies {
 public:
  SpilledCopies(HostPool* pool, Counters* counters) : pool_(*pool), counters_(*counters) {}

  struct Store {
    Range* range = nullptr;
    std::uint64_t claim = 0;
    std::shared_ptr<SpillFile> file;
    std::vector<SpilledBlock> blocks;
  };
  // False: the range has no host copy that may go, or the file is full.
  bool Begin(Range* range, const std::shared_ptr<SpillFile>& file, Store* out);
  // False: the store is in vain.
  bool CopyBlock(const Store& store, size_t index, std::byte* to) const;
  // The host copy goes, if all its blocks are written and the store is not in vain. True if so.
  bool End(Store* store, bool is_written);

  struct Load {
    Range* range = nullptr;
    std::uint64_t id = 0;  // 0: there is nothing to load
    std::shared_ptr<SpillFile> file;
    std::vector<SpilledBlock> blocks;
    HostBuffer buffer;
  };
  // False: there is no host memory.
  bool Begin(Range* range, Load* out);
  enum class Loaded : std::uint8_t { kYes, kInVain, kLost };
  // A failed read of bytes that exist nowhere else leaves the range as it is, and is said once.
  Loaded End(Load* load, const base::Status& read);
  // Without the lock. Tries more than once.
  static base::Status Read(const Load& load, base::FunctionRef<bool()> goes_on);

  // Both steps under the lock, for what calls rarely do. False: no memory, or the bytes are lost.
  bool LoadNow(Range* range);
  // The bytes mean nothing any more.
  void Drop(Range* range);

  // Any thread, without the lock.
  bool IsLost() const { return is_lost_.load(std::memory_order_relaxed); }
  size_t stored_bytes() const { return stored_bytes_; }

 private:
  void NoteLoss(const base::Status& read);

  HostPool& pool_;
  Counters& counters_;
  std::uint64_t last_id_ = 0;
  size_t stored_bytes_ = 0;
  std::atomic<bool> is_lost_{false};
};

}  // namespace spillway::interposer
