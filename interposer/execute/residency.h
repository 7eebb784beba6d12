// Where each range's bytes are, and the steps that move them.
//
// Called by the classes behind JobMemory with the state lock held. Owns the chunk pool, the
// addresses, the pinned host pool, the copy streams and all ranges. Nothing else in execute maps or
// unmaps.
//
// The code: residency.cpp (lives), residency_departure.cpp, residency_mapping.cpp (mappings,
// parking), residency_spare.cpp (what goes back to the device).
//
// A range's life: nowhere -> device -> leaving -> host, parked or dropped -> device -> freed.
//
// Invariants
//  1. A range is unmapped only when its uses and its copy are complete: cuMemUnmap does not wait.
//  2. A range that a call in progress names neither starts leaving nor leaves. Nor does it serve
//     another allocation. Calls name ranges by a pin or without the lock (calls.h).
//  3. The bytes of a range are on the device, in its host copy, or both. They are nowhere if it was
//     dropped and has a record (recompute_record.h). A host copy is valid from the completion of
//     its copy until the next touch that may write the range. During a call that overwrites all of
//     it, a range on the device may be empty: its host copy is kept until the call has been made. A
//     proof also marks its output empty (repeat_proofs.h).
//  4. Freed memory serves another allocation only with its earlier work as ready_after.
//  5. Device memory held never exceeds the budget (chunk_pool.h).
//  6. While parking is on, every range has a mapping, and a host copy beside device memory does not
//     count. Uses of a range are not known then: the caller moves mappings only while the device is
//     idle. While parking is off, a range is parked because a call needed that, or since parking
//     was on. Its uses are known like any other's: it loses that mapping after the last of them.
// Never: waits. NextToAwait answers what must be waited for.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "interposer/driver/address_arena.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/counters.h"
#include "interposer/execute/freed_ranges.h"
#include "interposer/execute/host_pool.h"
#include "interposer/execute/link_turns.h"
#include "interposer/execute/range.h"
#include "interposer/execute/spare_memory.h"
#include "interposer/execute/timeline.h"
#include "interposer/record/job_trace.h"

namespace spillway::interposer {

inline TraceEvent TraceOf(TraceKind kind, const Range* range, TraceCause why) {
  return {.kind = kind,
          .cause = why,
          .allocation = range->id,
          .values = {static_cast<std::int64_t>(range->requested_bytes)}};
}

inline TraceEvent StallEvent(StallCause cause) {
  return {.kind = TraceKind::kStall, .name = kStallNames[static_cast<std::size_t>(cause)]};
}

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
  // `busy`: all work that may still use its memory.
  void Free(Range* range, const UseList& busy);

  // The context's own error once a fault has ended it. Does not wait.
  CUresult Health() const;
  bool OwnsAddress(CUdeviceptr address) const { return addresses_.Owns(address); }
  bool IsMapped(const Range* range) const {
    return range->place == Place::kDevice || range->place == Place::kLeaving;
  }
  bool IsRestore(Use use) const { return use.stream == to_device_; }
  // A call that names the range follows: the range stays in place, or stops leaving.
  void Pin(Range* range);
  void Unpin(Range* range) { --range->pins; }
  // A call uses the range where it is. That stays so until Leave, after the call was made.
  void Enter(Range* range) {
    Pin(range);
    ++range->entered;
  }
  void Leave(Range* range) {
    --range->entered;
    Unpin(range);
  }
  template <class Ranges>
  bool AllOnDevice(const Ranges& ranges) const {
    return std::all_of(ranges.begin(), ranges.end(),
                       [this](const Range* range) { return IsMapped(range); });
  }
  // Orders the stream's next operation behind all that users of the memory must wait for.
  void OrderBehind(Tracked* memory, StreamState* user);
  // The call was made. If it may have written, the host copy is outdated, even one under way.
  void Used(Range* range, Use use, bool may_write);
  // By unfinished work. Call it with the fast path closed and no other call naming the range.
  bool MayBeUsedOn(Range* range, const UseList& streams);
  // Calls on that stream, which is ordered behind all of ready_after, need no lock from now on.
  void OpenFastPath(Range* range, std::uint64_t stream_serial);
  // Whether evicted memory is parked from now on. Turned on, all evicted ranges are mapped onto
  // their host copies and evictions are cancelled. False when some range cannot be mapped.
  bool SetParking(bool parking);
  bool parking() const { return parking_; }
  // Host memory for a range that is nowhere.
  bool ParkNew(Range* range);
  // For a call, without device memory: maps the range onto its host copy until it is restored.
  bool ParkForCall(Range* range);
  // No call uses the range where it is parked. While parking is on, the caller must know that.
  bool MayUnpark(Range* range);
  // Parked, and what must happen before its restore may not be waited for.
  bool StaysParked(Range* range);
  bool IsAnythingLeaving() const { return !leaving_.empty(); }
  // Cancels the range's eviction.
  void CancelEviction(Range* range);
  void CancelLeaving();
  Use LastRestore() const { return {to_device_, Timeline::IssuedOn(to_device_)}; }
  enum class Content : std::uint8_t { kWanted, kDead };
  // Gives memory that can be had at once to a range that is nowhere or on the host. Dead content is
  // not copied: then the range is empty, unless it may be used without being named.
  bool Restore(Range* range, TraceCause why = TraceCause::kDemand,
               Content content = Content::kWanted);
  // The call that would have overwritten the range was not made: restores its bytes.
  void Fill(Range* range);

  // Takes chunks that are free or can be had without waiting.
  bool TakeChunks(size_t bytes, Chunks* out);
  bool Charge(size_t bytes);
  CUdeviceptr MapAnew(size_t bytes, const Chunks& chunks);
  void UnmapAndGive(CUdeviceptr base, size_t bytes, Chunks* chunks);

  // The range can be evicted without a copy. (Note [Good host copies] in residency_departure.cpp)
  bool HasGoodHostCopy(const Range* range) const;

  enum class LeaveFirst : std::uint8_t { kLeastRecentlyUsed, kFurthestUse };  // by Range::next_use
  // Starts evictions until `bytes` are free or on their way. False when too little may move.
  bool StartMakingRoom(size_t bytes, LeaveFirst order = LeaveFirst::kLeastRecentlyUsed);
  // So much is free or on its way, besides what a smaller budget takes.
  bool WillHaveRoom(size_t bytes) const {
    return chunks_.ObtainableBytes() + PendingBytes() >= bytes + chunks_.ExcessBytes();
  }
  // Starts one eviction for a plan; false when the range may not leave, or cannot now.
  bool StartEviction(Range* range);
  // The same without a copy: the record recomputes the bytes.
  bool StartDrop(Range* range);
  // Notes finished evictions now, not only when their memory is wanted.
  void CollectLeft() {
    timeline_->Poll();
    CollectLeaving();
  }
  // Gives a dropped range memory that can be had at once. The caller provides the bytes.
  bool GiveDroppedMemory(Range* range);
  // The same in host memory, onto which the range is mapped.
  bool ParkDropped(Range* range);
  // The bytes of a revived range were not made.
  void DropAgain(Range* range);
  // The completions that may free memory next: the first of each stream.
  FirstUses NextToAwait();

  template <class Visit>
  void ForEachLive(Visit visit) {
    for (const auto& range : ranges_) {
      if (range->live) visit(range.get());
    }
  }
  std::vector<Range*> LiveRanges();
  // Another device may use all memory mapped now and later, or may no longer.
  void SetPeer(CUdevice peer, bool allowed);
  static void SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed);

  // A copy between device and host outside any range's life, on the eviction stream.
  Use CopyOnOwnStream(const CUDA_MEMCPY2D& copy);

  // Bytes of the range that are not on the device, or null.
  const void* HostCopy(const Range* range) const;

  void ReleaseAll();

  // Before the first allocation. There is no budget (spare_memory.h).
  void ReturnFreedMemory() { gives_back_ = true; }
  // After a free (not after each) or a wait: gives back idle memory beyond what is kept.
  enum class After : bool { kFree, kWait };
  void GiveBackSpare(After after);
  // Whether an allocation would get new memory although much freed memory is busy.
  bool MustAwaitSpare(size_t bytes);
  bool IsMoreThanKept(size_t unused_bytes) const { return unused_bytes > spare_.keep_bytes(); }

  void TraceNow(TraceKind kind, const Range* range, TraceCause why = TraceCause::kNone) {
    if (JobTrace::IsOn()) trace_->Now(TraceOf(kind, range, why));
  }
  void TraceMemory() {
    if (JobTrace::IsOn()) TraceMemoryNow();
  }

  ChunkPool& chunks() { return chunks_; }
  HostPool& host() { return host_; }
  // Asked before each copy begins. Copies are counted there.
  LinkTurns& link() { return link_; }
  // Gives up good host copies of resident ranges while the host pool is beyond its limit.
  void GiveUpSpareCopies();

 private:
  bool Map(CUdeviceptr base, const Chunks& chunks);
  bool AllowDevice(CUdeviceptr base, size_t bytes);
  bool Park(Range* range);
  bool MakeMappable(Range* range);
  void Unpark(Range* range);
  Range* ReuseFreed(size_t bytes);
  static void BeginLife(Range* range);
  Range* NewObject();
  bool StartLeaving(Range* range, TraceCause why);
  bool CopyOut(Range* range, TraceCause why);
  bool CopyIn(Range* range, TraceCause why);
  void TraceMemoryNow();
  void GiveHostCopy(Range* range);
  std::uint64_t CountUndocumented();
  void FinishLeaving(Range* range);
  void CollectFinished();
  void CollectLeaving();
  bool TakeAny(size_t bytes, Chunks* out);
  void RetireBeforeCreating(size_t bytes);
  bool WouldHoldTooMuch(size_t bytes, size_t more_bytes) const;
  bool ReleaseSpare();
  bool RetireOldestIdle();
  size_t UnusedBytes() const;
  void MarkBusySpare();
  bool CloseFastPath(Range* range);
  void NoteRecentUses(Range* range);
  bool IsHeld(const Range* range);
  bool IsIdle(Range* freed);
  enum class RetireFirst : bool { kLargest, kMostGranules };
  bool RetireIdle(RetireFirst order);
  void Retire(Range* range);
  static bool MayLeave(const Range& range);
  template <class Accepts>
  Range* Victim(LeaveFirst order, Accepts accepts);
  void SortCandidates(LeaveFirst order);
  void NoteUnusedPrefetch(Range* range);
  bool TakeHostBuffer(Range* range);
  size_t PendingBytes() const;

  // Constant after construction.
  const int device_;
  Timeline* const timeline_;
  Counters* const counters_;
  JobTrace* const trace_;
  StreamState* to_host_;  // own non-blocking copy streams
  StreamState* to_device_;
  CUstream streams_[2] = {};
  // Guarded by the caller's state lock.
  ChunkPool chunks_;
  AddressArena addresses_;
  HostPool host_;
  LinkTurns link_;
  std::vector<std::unique_ptr<Range>> ranges_;  // all, in no order
  std::list<Range*> leaving_;                   // oldest first
  FreedRanges freed_;
  std::vector<std::unique_ptr<Range>> idle_objects_;  // of retired ranges
  struct Candidate {
    Range* range;
    std::uint64_t life, last_touch, next_use;
  };
  std::vector<Candidate>
      candidates_;  // to be evicted, the first one last (residency_departure.cpp)
  bool parking_ = false;
  bool gives_back_ = false;
  SpareMemory spare_;
  int spare_pause_ = 0;  // calls until the next try to give back what was busy
  std::vector<CUdevice> peers_;
};

}  // namespace spillway::interposer
