// Managed allocations: where the bytes are, which work uses them, what new users must await.
//
// Members are guarded by the state lock, except the fast path, the recent uses and the last touch.
// Objects are reused, never freed: a call may hold one without a lock (calls.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/state/fast_path.h"
#include "interposer/execute/state/host_pool.h"
#include "interposer/execute/state/spill_file.h"
#include "interposer/execute/state/timeline.h"
#include "interposer/ledger/allocation.h"

namespace spillway::interposer {

// Launches that presumably only read memory that records need (presumed_reads.h).
struct PresumedUse {
  static constexpr std::uint32_t kNoPrint = ~std::uint32_t{0};
  std::uint32_t print = kNoPrint;  // a slot: the fingerprint from before the first of them
  UseList used;                    // the last work on the slot
  int in_progress = 0;             // calls
  // A fingerprint from behind the last of them, for a comparison. `taken_at`: what was launched
  // until then (PresumedReads::Launched).
  std::uint32_t latest = kNoPrint;
  Use taken;
  std::uint64_t taken_at = 0;
};

// On the device, every new user of the memory must wait for `ready_after`: the copy that restores
// it, or work that used it before it was freed. What the launch path reads comes first, in one
// cache line that it rarely writes.
struct alignas(64) Tracked : Allocation {
  FastPath fast_path;
  std::atomic<std::uint64_t> last_touch{0};
  UseList ready_after;
  base::InlineVector<std::uint64_t, 2>
      ordered;                   // serials of streams that are already behind ready_after
  bool holds_addresses = false;  // it may lead to other allocations: its fast path stays closed
  base::InlineVector<struct RecomputeRecord*, 2>
      readers;  // records that read it (recompute_records.h): its fast path stays closed
  bool free_is_due = false;  // the program has freed it, and a record still needs it
  // No call has named it since its allocation, so it has no content: its fast path stays closed.
  // Known only while the job is recorded.
  bool is_fresh = false;
  PresumedUse presumed;
};

struct SlabBlock : Tracked {
  RecentUsers users;
  UseList uses;  // work that may use it, as of the last MayBeUsedOn
  struct Slab* slab = nullptr;
  bool is_ours = false;  // saved bytes that records read, from before the program overwrote them
};

enum class Place : std::uint8_t {
  kNowhere,  // no memory yet: allocated, never used
  kDevice,   // mapped; all chunks present
  kLeaving,  // mapped, being evicted: unmapped when `departure` is done, unless touched before
  kHost,     // unmapped; the bytes are in `host`
  kParked,   // mapped onto `host`, where the bytes are
  kDropped,  // unmapped; the bytes are nowhere: `record` recomputes them
};

struct Range;
struct RangeLink {
  Range* before = nullptr;
  Range* after = nullptr;
};

struct Arena;
struct RecomputeRecord;

// Where the addresses of a range that is a part of an arena lie. They are not given out alone.
enum class PartPlace : std::uint8_t { kNone, kInner, kLast };

// What a range is in a run of the program's own mappings (Note [Runs] in runs.h).
enum class RunPiece : std::uint8_t {
  kNone,
  kAmongPieces,   // its neighbours are pieces, too
  kBesideOthers,  // not all of them: then its run stays held
};

// A host copy in the job's file.
struct SpilledBytes {
  std::shared_ptr<SpillFile> file;
  std::vector<SpilledBlock> blocks;
  std::uint64_t id = 0;
};

// The time in which a range has its device memory, by number (iteration_layout.h).
struct Residence {
  std::uint32_t iteration = 0;  // 0: none is known
  std::uint32_t number = 0;
  bool is_laid_out = false;  // it has the pieces that the layout has for it
};

struct Range : Tracked {
  RecentUses recent;
  Place place = Place::kNowhere;
  Chunks chunks;                          // freed, it holds only some of them, or none
  HostBuffer host;                        // when it has a host copy, or one is being made
  std::unique_ptr<SpilledBytes> spilled;  // or its host copy, in the job's file (spilled_copies.h)
  std::uint64_t spill_claim = 0;          // 0: its host copy is not being stored there
  UseList uses;       // enqueued on it since it was last known to be idle, except `recent`
  UseList departure;  // when leaving: what must complete before the unmap
  bool host_valid =
      false;  // on the device, and `host` still holds the same bytes, as far as calls show
  // A slot for the fingerprint of the bytes in `host`, kept for all lives of the range
  // (content_checks.h). kNoPrint: none so far.
  static constexpr std::uint32_t kNoPrint = ~std::uint32_t{0};
  std::uint32_t print = kNoPrint;
  bool print_is_valid = false;
  std::uint32_t content_print = kNoPrint;  // when leaving: whether the content equals them
  std::uint64_t copied_at =
      0;  // undocumented launches when the bytes were copied; kNeverGood: one was running
  static constexpr std::uint64_t kNeverGood = ~std::uint64_t{0};
  // On the device, but with its bytes in `host`: a call overwrites them, or nobody may use it yet.
  bool empty = false;
  // How its bytes are recomputed (recompute_records.h). Then its fast path stays closed.
  RecomputeRecord* record = nullptr;
  bool drops = false;  // when leaving: without its bytes, which the record recomputes
  bool live = true;    // not freed by the application
  // The program made its memory: one handle, which may be exported (own_memory.h).
  bool is_own = false;
  OwnMemoryKind own_kind;
  RunPiece run_piece = RunPiece::kNone;
  Arena* arena = nullptr;                   // of which it is a part: its fast path stays closed
  PartPlace part_place = PartPlace::kNone;  // also once it is freed
  std::uint64_t found_by = 0;  // the last search for a call's memory that found it as a part
  bool is_released = false;    // a piece of a released run: its fast path stays closed
  int pins = 0;                // calls in progress that name it and took the lock
  int entered = 0;             // of these, calls that use it where it is
  bool serves_parked = false;  // calls have used it parked: its host buffers are to be mappable
  int holds = 0;               // of owners that keep it in place, besides `unmovable` (holds.h)
  std::uint32_t life = 0;      // allocations that it was before this one
  size_t position = 0;
  std::uint64_t number = 0;    // of its addresses, in the order in which they were taken
  bool prefetched = false;     // restored by a plan, and not used since
  std::uint64_t next_use = 0;  // in events, as of the last question; the largest number: unknown
  // Its bytes mean nothing until the next call that names it, and it may lose its memory without a
  // copy. `scratch_call`: they will once that library call has ended (workspaces.h). With either,
  // its fast path stays closed.
  bool is_idle_workspace = false;
  bool leaves_when_idle = false;  // a plan evicts it once its call has ended
  std::uint64_t scratch_call = 0;
  std::uint64_t expected_call = 0;  // that will use it so if its launch is the next use
  RangeLink by_age, by_size;        // when freed (freed_ranges.h)
  size_t held_bytes = 0;            // when freed: of `chunks`, what it holds
  Residence residence;              // the last one of this life

  void BeginLife();
  // It has no memory and no addresses any more: the object waits for another range.
  void Retire();
  // It was mapped onto these chunks, and holds them.
  void NoteMapped(Chunks mapped);
  // It was unmapped. Returns the chunks that it held.
  Chunks NoteUnmapped();
};

// Users on other streams wait for this work.
inline void ReadyAfter(Tracked* memory, Use use) {
  memory->ready_after.Add(use);
  memory->ordered.clear();
  memory->ordered.push_back(Timeline::SerialOf(use.stream));
}

inline bool IsMapped(const Range* range) {
  return range->place == Place::kDevice || range->place == Place::kLeaving;
}

// Nothing keeps it on the device, but perhaps a call that names it without the lock.
inline bool MayLeave(const Range& range) {
  return range.place == Place::kDevice && range.pins == 0 && range.unmovable == Unmovable::kNo &&
         range.holds == 0 && range.live;
}

template <class Ranges>
bool AllOnDevice(const Ranges& ranges) {
  return std::all_of(ranges.begin(), ranges.end(), IsMapped);
}

inline void Range::BeginLife() {
  live = true;
  empty = false;
  drops = false;
  unmovable = Unmovable::kNo;
  is_mapping = is_own = is_released = false;
  run_piece = RunPiece::kNone;
  holds = 0;
  serves_parked = false;
  is_idle_workspace = leaves_when_idle = false;
  scratch_call = expected_call = 0;
  ++life;
}

inline void Range::Retire() {
  place = Place::kNowhere;
  uses.Clear();
  ready_after.Clear();
  ordered.clear();
  part_place = PartPlace::kNone;
  BeginLife();
}

inline void Range::NoteMapped(Chunks mapped) {
  chunks = std::move(mapped);
  for (Chunk* chunk : chunks) {
    chunk->holder = this;
    ++chunk->mappings;
  }
}

inline Chunks Range::NoteUnmapped() {
  for (Chunk* chunk : chunks) --chunk->mappings;
  std::erase_if(chunks, [this](const Chunk* chunk) { return chunk->holder != this; });
  held_bytes = 0;
  return std::exchange(chunks, {});
}

inline bool IsBlock(const Allocation* found) { return found->kind == AllocationKind::kSlabBlock; }
inline SlabBlock* AsBlock(Allocation* found) { return static_cast<SlabBlock*>(found); }
inline Range* AsRange(Allocation* found) { return static_cast<Range*>(found); }
// The arena that it is a part of, or null. `found` may be null.
inline Arena* ArenaOf(Allocation* found) {
  return found && !IsBlock(found) ? AsRange(found)->arena : nullptr;
}

}  // namespace spillway::interposer
