// Where each range's bytes are, and the steps that move them: materialise, offload, leave, restore,
// retire.
//
// Called by the classes behind JobMemory with the state lock held. Owns the chunk pool, the
// addresses, the pinned host pool, the copy streams and all ranges. The only room that maps, unmaps
// and copies.
//
// The code: residency.cpp (lives), residency_departure.cpp, residency_mapping.cpp (mappings,
// parking), residency_spare.cpp (what goes back to the device).
//
// The life of a range's bytes: nowhere -> device -> leaving -> host, parked or dropped -> device ->
// ... -> freed -> gone.
//
// Invariants
//  1. A range is unmapped only when every use of it and the copy of its bytes are complete
//  (cuMemUnmap does not wait).
//  2. A range that an application call in progress names (by a pin, or without the lock: calls.h)
//  neither starts
//     leaving nor leaves, and serves no other allocation.
//  3. The bytes of a range are on the device, or in its host copy, or both, or nowhere, if it was
//  dropped and has a record
//     (recompute_record.h); a host copy counts as valid only from
//     the completion of its copy until the next touch of the range that may write. Between the
//     beginning and the end of a call that overwrites all of it, and only there, a range on the
//     device may be empty: its host copy is kept until the call has been made.
//  4. Memory of a freed range serves another allocation only with what was enqueued before the free
//  as ready_after.
//  5. Device memory held never exceeds the budget (chunk_pool.h).
//  6. While parking is on every range has a mapping, a host copy beside device memory is nobody's
//  truth, and what may
//     use a range is not known: the caller moves mappings only while the device is idle. While it
//     is off a range is parked because a call needed it so, or since parking was on, and its uses
//     are known like any other's: it loses that mapping after the last of them.
// Never: waits. What must be waited for is answered (NextToAwait).
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

// What happens to a range, for the trace.
inline TraceEvent TraceOf(TraceKind kind, const Range* range, TraceCause why) {
  return {.kind = kind,
          .cause = why,
          .allocation = range->id,
          .values = {static_cast<std::int64_t>(range->requested_bytes)}};
}

// The program has waited for memory.
inline TraceEvent StallEvent(StallCause cause) {
  return {.kind = TraceKind::kStall, .name = kStallNames[static_cast<std::size_t>(cause)]};
}

// Of memory for runs of what may be made again: always on the device.
struct ScratchPiece {
  CUdeviceptr base = 0;
  size_t size_bytes = 0;
  Chunks chunks;
};

class Residency {
 public:
  // Host memory is such that it can be mapped at device addresses if `may_park` and the driver has
  // it.
  Residency(int device, size_t budget_bytes, size_t host_limit_bytes, bool may_park,
            Timeline* timeline, Counters* counters, JobTrace* trace);

  // A range of its own for `bytes`; with memory if there is some without taking it from others,
  // else nowhere. Null when the driver has no addresses left.
  Range* NewRange(size_t bytes);
  // The application freed it; `busy` is all that may still use its memory.
  void Free(Range* range, const UseList& busy);

  // The context's own error once a fault has ended it; asked without waiting.
  CUresult Health() const;
  bool OwnsAddress(CUdeviceptr address) const { return addresses_.Owns(address); }
  bool IsMapped(const Range* range) const {
    return range->place == Place::kDevice || range->place == Place::kLeaving;
  }
  bool IsRestore(Use use) const { return use.stream == to_device_; }
  // A call that names the range is about to be made: it stays where it is, or stops leaving.
  void Pin(Range* range);
  void Unpin(Range* range) { --range->pins; }
  // A call is made of the range where it is; until Leave, which follows when it was made, nothing
  // of that changes.
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
  // The stream's next operation comes behind all that users of the memory must wait for.
  void OrderBehind(Tracked* memory, StreamState* user);
  // The call was made: `use` is its place in its stream. After a call that may have written, a host
  // copy, complete or under way, is not the truth any more.
  void Used(Range* range, Use use, bool may_write);
  // Something enqueued on these streams that is not known to be complete names the range. Its fast
  // path is closed, and no call names it but the caller's.
  bool MayBeUsedOn(Range* range, const UseList& streams);
  // Calls on the stream of that serial number, which is ordered behind all of ready_after, need no
  // lock any more.
  void OpenFastPath(Range* range, std::uint64_t stream_serial);
  // From now on what is evicted is parked, or is not. Turned on, all that is away is mapped onto
  // its host copy, and what was leaving stays; false when some of it cannot be mapped.
  bool SetParking(bool parking);
  bool parking() const { return parking_; }
  // Memory on the host for a range that is nowhere.
  bool ParkNew(Range* range);
  // A call names the range, and there is no device memory for it: its addresses lead to its host
  // copy until it is restored.
  bool ParkForCall(Range* range);
  // No call uses the range where it is parked; while parking is on it is the caller who knows.
  bool MayUnpark(Range* range);
  // Parked, and it may not be restored before something happens for which nobody may wait.
  bool StaysParked(Range* range);
  bool IsAnythingLeaving() const { return !leaving_.empty(); }
  // The range, which was leaving, stays.
  void Stay(Range* range);
  // Nothing leaves any more: what had not left stays.
  void CancelLeaving();
  // The last copy that brings a range back.
  Use LastRestore() const { return {to_device_, Timeline::IssuedOn(to_device_)}; }
  enum class Content : std::uint8_t { kWanted, kDead };
  // Gives memory to a range that is nowhere or on the host, from what can be had at once. Where its
  // content is dead, and nobody may use it without naming it, it is empty then.
  bool Restore(Range* range, TraceCause why = TraceCause::kDemand,
               Content content = Content::kWanted);
  // The call that would have overwritten the range was not made.
  void Fill(Range* range);

  // Takes `bytes` of chunks that are free or can be had without waiting.
  bool TakeChunks(size_t bytes, Chunks* out);
  bool Charge(size_t bytes);
  CUdeviceptr MapAnew(size_t bytes, const Chunks& chunks);
  void UnmapAndGive(CUdeviceptr base, size_t bytes, Chunks* chunks);

  // Its memory can be taken away without a copy. (Note [Good host copies] in
  // residency_departure.cpp)
  bool HasGoodHostCopy(const Range* range) const;

  // Which ranges leave first when something must.
  enum class LeaveFirst : std::uint8_t { kLeastRecentlyUsed, kFurthestUse };  // by Range::next_use
  // Starts to move out ranges until `bytes` are free or on their way; false when there are not
  // enough that may move.
  bool StartMakingRoom(size_t bytes, LeaveFirst order = LeaveFirst::kLeastRecentlyUsed);
  // So many bytes are free or on their way already, beside what a budget that became less takes.
  bool HasRoomComing(size_t bytes) const {
    return chunks_.ObtainableBytes() + PendingBytes() >= bytes + chunks_.ExcessBytes();
  }
  // One range is to leave, as a plan says; false when it may not, or cannot now.
  bool StartToLeave(Range* range);
  // The same without a copy: its record makes the bytes again.
  bool StartToDrop(Range* range);
  // What has left is noted now, and not only when its memory is wanted.
  void CollectLeft() {
    timeline_->Poll();
    CollectLeaving();
  }
  // Memory for a range that was dropped, from what can be had at once; the bytes are the caller's
  // affair.
  bool Revive(Range* range);
  // The same in host memory, at which it is mapped.
  bool ReviveParked(Range* range);
  // There are none.
  void DropAnew(Range* range);
  // The completions of which any may be the next to free memory, the first of each stream; none
  // when nothing is under way.
  FirstUses NextToAwait();

  // Calls visit(range) for every range that lives.
  template <class Visit>
  void ForEachLive(Visit visit) {
    for (const auto& range : ranges_) {
      if (range->live) visit(range.get());
    }
  }
  std::vector<Range*> LiveRanges();
  // Another device may use all that is mapped and will be mapped, or may no longer.
  void SetPeer(CUdevice peer, bool allowed);
  static void SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed);

  // A copy between device and host outside any range's life, on the stream of those that leave.
  Use CopyOnOwnStream(const CUDA_MEMCPY2D& copy);

  // The bytes of a range that are not on the device, or null.
  const void* HostCopy(const Range* range) const;

  void ReleaseAll();

  // Without a budget what is freed goes back to the device (spare_memory.h). Before the first
  // allocation.
  void GiveBackWhatIsFreed() { gives_back_ = true; }
  // After a free, or a wait for the device: what is idle and beyond what is kept. After a free not
  // each time.
  enum class After : bool { kFree, kWait };
  void GiveBackSpare(After after);
  // An allocation of so much would be given new memory beside much that was freed and is busy.
  bool MustAwaitSpare(size_t bytes);
  bool IsMoreThanKept(size_t unused_bytes) const { return unused_bytes > spare_.keep_bytes(); }

  // For the trace: what happens to a range, and how much memory is where now.
  void TraceNow(TraceKind kind, const Range* range, TraceCause why = TraceCause::kNone) {
    if (JobTrace::IsOn()) trace_->Now(TraceOf(kind, range, why));
  }
  void TraceMemory() {
    if (JobTrace::IsOn()) TraceMemoryNow();
  }

  ChunkPool& chunks() { return chunks_; }
  HostPool& host() { return host_; }
  // Whoever begins to copy asks there before; the copies are counted here.
  LinkTurns& link() { return link_; }
  // Good host copies of what is on the device are given up while the host pool is beyond its limit.
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
  std::vector<Candidate> candidates_;  // to leave, the first one last (residency_departure.cpp)
  bool parking_ = false;
  bool gives_back_ = false;
  SpareMemory spare_;
  int spare_pause_ = 0;  // calls until it is tried again to give back what was busy
  std::vector<CUdevice> peers_;
};

}  // namespace spillway::interposer
