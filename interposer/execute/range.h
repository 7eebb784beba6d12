// Managed allocations with what execute knows of them: where the bytes are, who uses them, what new
// users must await.
//
// Members are guarded by the state lock, but for the fast path, the recent uses and the time of the
// last touch. Objects are used again, never given back: a call may hold one without a lock
// (calls.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/fast_path.h"
#include "interposer/execute/host_pool.h"
#include "interposer/execute/timeline.h"
#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// What every new user of an allocation's memory must wait for on the device: the copy that restores
// it, or the work that used the same memory before it was freed. What the launch path reads comes
// first, together in one cache line that it rarely writes.
struct alignas(64) Tracked : Allocation {
  FastPath fast_path;
  std::atomic<std::uint64_t> last_touch{0};
  UseList ready_after;
  base::InlineVector<std::uint64_t, 2>
      ordered;                   // serials of streams that already wait for ready_after
  bool holds_addresses = false;  // it may lead to other allocations: its fast path stays closed
  base::InlineVector<struct RecomputeRecord*, 2>
      readers;  // records that read it (recompute_records.h): meanwhile its fast path stays closed
  bool free_is_due = false;  // the program has freed it, and a record still needs it
};

struct SlabBlock : Tracked {
  RecentUsers users;
  UseList uses;  // what may be used it, from when that was last asked, but for the recent users
  struct Slab* slab = nullptr;
  bool is_ours = false;  // bytes that records read, as they were before the program wrote them anew
};

enum class Place : std::uint8_t {
  kNowhere,  // no memory yet: allocated, never used
  kDevice,   // mapped; all chunks present
  kLeaving,  // mapped, on its way out: unmapped when `departure` is done, unless touched before
  kHost,     // unmapped; the bytes are in `host`
  kParked,   // mapped onto `host`, where the bytes are
  kDropped,  // unmapped; the bytes are nowhere: `record` makes them again
};

struct Range;
struct RangeLink {
  Range* before = nullptr;
  Range* after = nullptr;
};

struct RecomputeRecord;

struct Range : Tracked {
  Place place = Place::kNowhere;
  Chunks chunks;    // when mapped onto device memory
  HostBuffer host;  // when it has a host copy, or one is being made
  UseList uses;  // work enqueued on it since it was last known to be idle, but for the recent uses
  UseList departure;  // when leaving: what must complete before it is unmapped
  bool host_valid =
      false;  // on the device, and `host` still holds the same bytes, as far as calls show
  std::uint64_t copied_at =
      0;  // undocumented launches when the bytes were copied; kNeverGood: one was at work
  static constexpr std::uint64_t kNeverGood = ~std::uint64_t{0};
  bool empty = false;  // on the device, without its bytes, which are in `host`: a call overwrites
                       // them; or nobody may use it yet
  RecomputeRecord* record = nullptr;  // how its bytes are made again (recompute_records.h); then
                                      // its fast path stays closed
  bool drops = false;  // when leaving: without its bytes, which the record makes again
  bool live = true;    // not freed by the application
  int pins = 0;        // application calls in progress that name it and took the lock
  int entered = 0;     // of them, those that have entered: they use it where it is
  bool serves_parked =
      false;                // calls have used it where it was parked: its host copies can be mapped
  int holds = 0;            // who keeps it where it is, beside `unmovable` (holds.h)
  std::uint32_t life = 0;   // how many allocations it was before this one
  size_t position = 0;      // in residency's list of ranges
  bool prefetched = false;  // brought back by a plan, and not used since
  std::uint64_t next_use =
      0;  // events until then, as of the last time that somebody asked; the most: unknown
  RangeLink by_age, by_size;  // when freed: its places among the freed ranges (freed_ranges.h)
  RecentUses recent;
};

// What the ledger found.
inline bool IsBlock(const Allocation* found) { return found->kind == AllocationKind::kSlabBlock; }
inline SlabBlock* AsBlock(Allocation* found) { return static_cast<SlabBlock*>(found); }
inline Range* AsRange(Allocation* found) { return static_cast<Range*>(found); }

}  // namespace spillway::interposer
