// Where each range's bytes are, and the steps that move them.
//
// Called by the classes behind JobMemory with the state lock held. Owns the device memory, the
// ranges, and the classes that each do one thing with them, below. Nothing else in execute maps or
// unmaps.
//
// A range's life: nowhere -> device -> leaving -> host, parked or dropped -> device -> freed.
//
// Invariants
//  1. The bytes of a range are on the device, in its host copy, or both. They are nowhere if it was
//     dropped and has a record (recompute_record.h). During a call that overwrites all of it, a
//     range on the device may be empty: its host copy is kept until the call has been made. A proof
//     also marks its output empty (repeat_proofs.h).
//  2. A range that a call in progress names stays where it is.
//  3. Device memory held never exceeds the budget (chunk_pool.h).
// Never: waits. NextToAwait answers what must be waited for.
#pragma once

#include <algorithm>
#include <vector>

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/content_checks.h"
#include "interposer/execute/residency/departures.h"
#include "interposer/execute/residency/freed_memory.h"
#include "interposer/execute/residency/host_copies.h"
#include "interposer/execute/residency/iteration_layout.h"
#include "interposer/execute/residency/laid_out_memory.h"
#include "interposer/execute/residency/mappings.h"
#include "interposer/execute/residency/parked_ranges.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/residency/spare_release.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

// Memory for replays: always on the device.
struct ScratchPiece {
  CUdeviceptr base = 0;
  size_t size_bytes = 0;
  Chunks chunks;
};

class Residency {
 public:
  // `may_park`: host memory is mappable at device addresses, if the driver has such memory.
  Residency(int device, size_t budget_bytes, size_t host_limit_bytes, bool may_park,
            Timeline* timeline, Counters* counters, JobTrace* trace);

  // With memory if some can be had without evicting. Null when there are no addresses left.
  Range* NewRange(size_t bytes);
  // At addresses taken for all of it, in parts; the first ones with memory, as far as some can be
  // had without evicting.
  std::vector<Range*> NewParts(CUdeviceptr base, size_t bytes, size_t part_bytes);
  // Whether work under way will free what the layout has for a new range.
  bool MustAwaitLaidOut(size_t size_bytes);
  // Without waiting, be it cut.
  bool HasAtHand(size_t bytes) {
    return freed_.IdleBytesReach(bytes - std::min(bytes, chunks_.ObtainableBytes()));
  }
  // `busy`: all work that may still use its memory.
  void Free(Range* range, const UseList& busy);

  // The program's own memory, mapped at its own addresses (own_memory.h). It has no content yet.
  Range* Adopt(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
               const OwnMemoryKind& kind);
  // Such a range, idle, gets other addresses: `to`, or new ones of ours if that is 0. False when
  // the driver does not map it there.
  bool Relocate(Range* range, CUdeviceptr to);
  // Idle, it is the program's again, whatever the budget: mapped at its addresses, or nowhere.
  // Answers the driver's handle; 0: its bytes are lost.
  CUmemGenericAllocationHandle Disown(Range* range);
  // Idle, it ends. Its memory goes back to the driver.
  void End(Range* range);

  // A call that names the range follows: the range stays in place, or stops leaving.
  void Pin(Range* range);
  static void Unpin(Range* range) { --range->pins; }
  // A call uses the range where it is. That stays so until Leave, after the call was made.
  void Enter(Range* range) {
    Pin(range);
    ++range->entered;
  }
  static void Leave(Range* range) {
    --range->entered;
    Unpin(range);
  }
  // Orders the stream's next operation behind all that users of the memory must wait for.
  void OrderBehind(Tracked* memory, StreamState* user);
  // The call was made. If it may have written, the host copy is outdated, even one under way.
  void Used(Range* range, Use use, bool may_write);

  enum class Content : std::uint8_t { kWanted, kDead };
  // Gives memory that can be had at once to a range that is nowhere or on the host. Dead content is
  // not copied: then the range is empty, unless it may be used without being named.
  bool Restore(Range* range, TraceCause why = TraceCause::kDemand,
               Content content = Content::kWanted);
  // The call that would have overwritten the range was not made: restores its bytes.
  void Fill(Range* range);
  // Gives a dropped range memory that can be had at once. The caller provides the bytes.
  bool GiveDroppedMemory(Range* range);
  // The same in host memory, onto which the range is mapped.
  bool ParkDropped(Range* range);
  // The bytes of a revived range were not made.
  void DropAgain(Range* range);
  // Bytes of the range that are not on the device, or null. Reads them if they are in the job's
  // file.
  const void* HostCopy(Range* range);

  // Whether evicted memory is parked from now on. Turned on, all evicted ranges are mapped onto
  // their host copies and evictions are cancelled. False when some range cannot be mapped.
  bool SetParking(bool parking);
  bool parking() const { return parked_.is_on(); }
  // Another device may use all memory mapped now and later, or may no longer.
  void SetPeer(CUdevice peer, bool allowed);

  // Maps memory that can be had at once at new addresses. Its users wait for `ready_after`, to
  // which this adds. 0: there is none.
  CUdeviceptr MapNew(size_t bytes, Chunks* chunks, UseList* ready_after);
  // Takes idle chunks that are free or can be had without waiting.
  bool TakeChunks(size_t bytes, Chunks* out);
  bool Charge(size_t bytes);
  void UnmapAndGive(CUdeviceptr base, size_t bytes, Chunks* chunks);
  // Notes finished evictions now, not only when their memory is wanted.
  void CollectLeft();
  // The completions that may free memory next: the first of each stream.
  FirstUses NextToAwait();

  template <class Visit>
  void ForEachLive(Visit visit) {
    ranges_.ForEachLive(visit);
  }
  std::vector<Range*> LiveRanges();
  // While the host pool is beyond its limit.
  void GiveUpSpareCopies() { copies_.GiveUpSpare(ranges_); }
  size_t ReleaseSpareCopies() { return copies_.ReleaseSpare(ranges_); }
  size_t ResidentTwiceBytes() const { return HostCopies::ResidentTwiceBytes(ranges_); }
  void TraceMemory() {
    if (JobTrace::IsOn()) TraceMemoryNow();
  }
  void ReleaseAll();

  // What each does with ranges, memory or bytes. The classes behind JobMemory call them as they
  // call this one.
  ChunkPool& chunks() { return chunks_; }
  Mappings& mappings() { return mappings_; }
  const Mappings& mappings() const { return mappings_; }
  RangeUses& uses() { return uses_; }
  HostCopies& copies() { return copies_; }
  const HostCopies& copies() const { return copies_; }
  HostPool& host() { return copies_.pool(); }
  ContentChecks& checks() { return checks_; }
  ParkedRanges& parked() { return parked_; }
  Departures& departures() { return departures_; }
  LaidOutMemory& laid_out() { return laid_out_; }
  SpareRelease& spare() { return spare_; }

 private:
  Range* NewLaidOut(size_t size_bytes);
  bool TakeAtOnce(size_t bytes, Chunks* out);
  bool TakeAny(size_t bytes, Chunks* out);
  bool TakeForNew(size_t bytes, FreedMemory::Taken* of_freed, Chunks* chunks);
  bool TakeWithFreed(size_t bytes, Cutting cutting, FreedMemory::Taken* of_freed, Chunks* chunks);
  bool GiveBytes(Range* range, TraceCause why, Content content);
  bool GiveFirstMemory(Range* range);
  bool MapFirst(CUdeviceptr base, size_t bytes, Chunks* chunks, UseList* ready_after);
  bool GiveIdleMemory(Range* range);
  bool TakeIdleMemory(Range* range, bool* is_laid_out, Chunks* chunks);
  bool TakeWhole(const Range& range, Chunks* out);
  bool MapElsewhere(Range* range, CUdeviceptr to);
  CUmemGenericAllocationHandle MakeForProgram(Range* range);
  void Forget(Range* range);
  void GiveMemory(Range* range);
  void CollectFinished();
  void TraceMemoryNow();

  Timeline* const timeline_;
  Counters* const counters_;
  JobTrace* const trace_;
  // Guarded by the caller's state lock. Each uses only those before it.
  ChunkPool chunks_;
  RangeTable ranges_;
  Mappings mappings_;
  RangeUses uses_;
  HostCopies copies_;
  ContentChecks checks_;
  ParkedRanges parked_;
  FreedMemory freed_;
  IterationLayout layout_;
  Departures departures_;
  LaidOutMemory laid_out_;
  SpareRelease spare_;
};

}  // namespace spillway::interposer
