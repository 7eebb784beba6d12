// The memory of this job behind one door: allocate, free, and "make these resident" around every call that names
// device memory.
//
// Called by the hooks on any application thread. One per device, made at the first allocation on it (runtime.h), never
// destroyed.
//
// A call that names managed memory goes: Begin (find, pin, make resident, order its stream after what it must await),
// the driver's own function, End (its place in the stream becomes the last use; unpin). When all that the call names is
// on the device and asks for nothing (Note [Gates] in calls.h), neither takes a lock. Otherwise both take the state lock,
// which is held in neither the driver's function nor any wait; the making lock is held while memory is being made, so
// that two calls never each hold half of what the other needs.
//
// The code: job_memory*.cpp, and the classes that it wires, which have headers of their own (README.md has the map).
//
// Invariants
//  1. Between Begin and End everything the call names is mapped and stays so.
//  2. Begin fails only when the call's own memory and what cannot move exceed the budget and cannot be parked (or the host
//     limit is reached).
//  3. The memory of a free serves others only after the work enqueued before it. A free waits for that of this work whose
//     effects the program could see without a call; the rest is complete before the program can tell (free_promises.h).
// Never: calls into the application; waits with the state lock held.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "base/mutex.h"
#include "base/scoped_count.h"
#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/free_memory.h"
#include "interposer/execute/holds.h"
#include "interposer/execute/input_copies.h"
#include "interposer/execute/job_snapshot.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/memory_scan.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/recompute_records.h"
#include "interposer/execute/repeat_proofs.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/shared_memory.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/waits.h"
#include "interposer/lease/budget_schedule.h"
#include "interposer/ledger/claims.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/ledger.h"
#include "interposer/ledger/passed_through.h"
#include "interposer/ledger/transfer.h"
#include "interposer/ledger/word_scan.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/operation_shape.h"
#include "interposer/record/recorder.h"
#include "protocol/message.h"

namespace spillway::interposer {

class JobMemory {
 public:
  JobMemory(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes, ParkChoice park,
            LearnChoice learn = LearnChoice::kOff);

  CUresult Allocate(size_t bytes, CUdeviceptr* out);
  // False when the address is not the base of a managed allocation: the driver frees it.
  // `is_pooled`: it came from a memory pool, and the driver would not wait.
  bool Free(CUdeviceptr base, bool is_pooled = false);
  bool FreeAsync(CUdeviceptr base, StreamName stream);

  bool MightBeManaged(CUdeviceptr word) const { return state_.ledger.MightBeManaged(word); }
  // Of all words that might be.
  WordBounds Bounds() const { return state_.Bounds(); }
  // Besides out of memory: a copy or query that names freed memory is CUDA_ERROR_INVALID_VALUE, as bare; a launch may
  // carry stale addresses that it does not use. In a context that is beyond use, the context's own error.
  CUresult Begin(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  void End(TouchSet* set, Effect effect);
  // A call is about to be made of which nothing is known: a kernel seen for the first time, a copy whose payload another
  // may still change. Returns when it can do no harm.
  void SomethingNew() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // After End of a launch that awaits a look; `ran` when the driver accepted it. True when its work was looked at: the
  // kernel is not new any more.
  bool EndNew(const Addresses& addresses, const TouchSet& set, bool ran)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Kernels allocate memory of their own, in which nobody can look for addresses.
  static void HeapIsUsed() { Parking::HeapIsUsed(); }
  void Wrote(const Transfers& transfers, const TouchSet& set) { stored_.Wrote(transfers, set); }
  void KnowGlobal(CUdeviceptr base, size_t bytes, const void* module) {
    stored_.KnowGlobal(base, bytes, module);
  }
  void ForgetGlobals(const void* module) { stored_.ForgetGlobals(module); }
  void ForgetHost(CUdeviceptr base, size_t bytes) { stored_.ForgetHost(base, bytes); }
  void CallEnded(const LibraryCall& call) { proofs_.CallEnded(call); }
  bool EndRecipes() { return replays_.EndRecipes(); }
  bool MayReplay(std::uint64_t token) { return proofs_.MayReplay(token); }
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) { plan_.Adopt(std::move(plan)); }
  void TraceDropped(std::int64_t planned_ns, std::int64_t without_ns) {
    plan_.TraceDropped(planned_ns, without_ns);
  }
  bool Parks() { return plan_.Parks(); }
  void AboutToBlock(const std::vector<Use>& awaited) { plan_.AboutToBlock(awaited); }
  void GiveBackWhatIsFreed() { eviction_.GiveBackWhatIsFreed(); }
  void BeginRecording() { recording_.BeginRecording(); }
  std::int64_t PlannableBytes() { return recording_.PlannableBytes(); }  // the budget, less what cannot move

  // Before the first allocation. For tests: what can be made again is dropped at once. There is no budget (spare_memory.h).
  void DropEagerly() { state_.drops_eagerly = true; }

  // From now on the range stays where it is, on the device, until the owner's hold ends (holds.h). To be called between
  // Begin and End of a call that names the address; small allocations stay anyway.
  void Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) SPILLWAY_EXCLUDES(kStateLock);
  void EndHold(std::uint64_t owner) SPILLWAY_EXCLUDES(kStateLock);
  // The same in two steps, for owners whose number may be another's as soon as they are destroyed.
  Holds::Held TakeHold(std::uint64_t owner) SPILLWAY_EXCLUDES(kStateLock);
  void EndHold(Holds::Held held) SPILLWAY_EXCLUDES(kStateLock);
  void PutHoldBack(std::uint64_t owner, Holds::Held held) SPILLWAY_EXCLUDES(kStateLock);

  // Another device's work may use the job's memory, also where no call of ours names it: until DenyPeer all of it is on the
  // device, and no more is granted than the budget. CUDA_ERROR_PEER_ACCESS_UNSUPPORTED while more than that is allocated.
  CUresult AllowPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeer(CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The same for one allocation, of a pool: until DenyPeerAt, or its free, it stays. What shares a slab with it is open, too.
  CUresult AllowPeerAt(CUdeviceptr address, CUdevice peer) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  // Brings the allocation to the device, where it stays until EndHold(owner), and lets others have its memory.
  CUresult Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsShareable() SPILLWAY_EXCLUDES(kStateLock);

  bool IsAway(CUdeviceptr address);
  // Copies `bytes` from an allocation that is away out of its host copy; false when it is not away.
  bool ReadAway(CUdeviceptr source, void* destination, size_t bytes);

  // Allocations that the driver serves but that count against the budget: charged before, noted when made.
  bool Charge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);
  void Discharge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);
  void NotePassedThrough(std::uint64_t key, size_t bytes);  // key: its address or handle
  // What is noted under the key, which is forgotten, but stays charged; 0 when nothing is.
  size_t TakePassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(kStateLock);
  // The driver has freed it.
  void ForgetPassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(kStateLock);
  // Another context than the job's.
  void ContextDestroyed(CUcontext context) SPILLWAY_EXCLUDES(kStateLock);

  // What frees have promised (free_promises.h): the stream's next operation comes behind it; it is complete. False: none was open.
  // Shows: the program has enqueued what no other hook tells of.
  void KeepPromises(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);
  bool AwaitPromises() SPILLWAY_EXCLUDES(kStateLock);
  void Shows(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);

  // A synchronising call: what it covers is noted before, and marked complete after it succeeded.
  std::vector<Use> IssuedOn(StreamName stream);
  std::vector<Use> IssuedIn(CUcontext context) SPILLWAY_EXCLUDES(kStateLock);
  static void Completed(const std::vector<Use>& uses);
  void StreamDestroyed(CUstream stream);
  // The program has waited for work on the device.
  void Waited();
  // The stream is about to wait for something that the program does when it likes.
  void AboutToWait(StreamName stream);
  // The stream is about to join a capture: its work so far is marked.
  void TakeCheckpoint(StreamName stream);
  // A stream is about to capture: all streams' work so far is marked.
  void TakeCheckpoints() SPILLWAY_EXCLUDES(kStateLock);

  // An address of ours, whether something lives there or not.
  bool Owns(CUdeviceptr address) SPILLWAY_EXCLUDES(kStateLock);
  // An address of ours at which nothing lives any more.
  bool IsFreed(CUdeviceptr address);
  // The allocation that the address lies in; false when it is not managed.
  bool Describe(CUdeviceptr address, Allocation* out);
  // What the program is told to be free; the device's own figures are those of all that use it.
  size_t ShownFreeBytes(size_t device_free_bytes, size_t device_bytes) SPILLWAY_EXCLUDES(kStateLock);
  size_t FreeBytes();  // of the budget
  size_t budget_bytes() const { return state_.budget.bytes(); }
  // The budget is another one from now on; what is held beyond it stays until MeetBudget, or until calls take it away. Waits for nothing.
  void GrantBudget(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  // Likewise, but only until the next one, which is near: who needs more waits for that, until then at the latest (of MonotonicNs).
  void HoldBudget(size_t bytes, std::uint64_t until_ns) SPILLWAY_EXCLUDES(kStateLock);
  // Returns when the budget is met, or when nothing more can be done for that at the moment: then calls go on to take memory away
  // until it is.
  void MeetBudget() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void SetBudget(size_t bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);  // both
  // What the agent grants beside the budget. Host memory: never more than the launcher allows, and never less
  // than what has been granted to the program needs. The link: thousandths, for the planner.
  void SetHostLimit(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  size_t own_host_limit_bytes() const { return state_.host_grant.own_limit_bytes(); }
  void SetLinkPermille(std::int64_t permille) { link_permille_.store(permille, std::memory_order_relaxed); }
  std::int64_t link_permille() const { return link_permille_.load(std::memory_order_relaxed); }
  bool JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file)
      SPILLWAY_EXCLUDES(kStateLock);
  // For tests: the budget at certain launches (lease/budget_schedule.h). Before the first allocation.
  void Schedule(BudgetSchedule schedule) { schedule_ = std::move(schedule); }
  CUcontext context() const { return state_.context; }
  int device() const { return state_.device; }
  Recorder& recorder() { return state_.recorder; }

  using Snapshot = JobSnapshot;
  Snapshot Read();
  // For code that may run in a signal handler: false when the lock is not to be had soon.
  bool TryRead(Snapshot* out);

  // Whether the device is at something that the program enqueued, and that does not wait for the program. Waits for nothing.
  bool HasWork() SPILLWAY_EXCLUDES(kStateLock);

  // The context is going away: gives everything back to the driver.
  void ReleaseAll();

 private:
  bool Admits(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  bool HasRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  bool FitsBudget(size_t size_bytes) const SPILLWAY_REQUIRES(kStateLock);
  void ChangeBudget(size_t bytes, std::uint64_t held_until_ns) SPILLWAY_EXCLUDES(kStateLock);
  size_t UsedBytes() const SPILLWAY_REQUIRES(kStateLock);
  GivenMemory Given() SPILLWAY_REQUIRES(kStateLock);
  CUresult ShareResident(CUdeviceptr address, SharedMemory* out) SPILLWAY_EXCLUDES(kStateLock);
  Snapshot ReadLocked() SPILLWAY_REQUIRES(kStateLock);
  CUresult AllocateSmall(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult AllocateRange(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void AwaitRoomFor(size_t size_bytes, bool even_held) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Range* NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed) SPILLWAY_REQUIRES(kStateLock);
  CUresult Refused() SPILLWAY_REQUIRES(kStateLock);
  void Know(Range* range) SPILLWAY_REQUIRES(kStateLock);
  void DischargeLocked(size_t bytes, Unmovable reason = Unmovable::kDriverServed)
      SPILLWAY_REQUIRES(kStateLock);

  bool IsForeign(StreamName stream) SPILLWAY_EXCLUDES(kStateLock);
  CUresult BeginEither(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  CUresult BeginLocked(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void Withdraw(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  static bool UseBlocksAtOnce(const TouchSet& set);
  static void EndAtOnce(const TouchSet& set);
  void EndLocked(TouchSet* set, Effect effect) SPILLWAY_EXCLUDES(kStateLock);
  void OpenGate(SlabBlock* block, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);

  bool ReachesTooMuch(const TouchSet& set) const SPILLWAY_REQUIRES(kStateLock);
  void BeginParkingIfDue() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void BeginParking() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void Follow(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  void Reach(CUdeviceptr word, TouchSet* set, std::vector<Tracked*>* holders) SPILLWAY_REQUIRES(kStateLock);
  bool MustWithdraw(Effect effect, const TouchSet& set) const;

  void SetPeer(CUdevice peer, bool allowed) SPILLWAY_REQUIRES(kStateLock);
  bool SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) SPILLWAY_EXCLUDES(kStateLock);
  void AwaitBeforeFree() SPILLWAY_EXCLUDES(kStateLock);
  void AwaitWhatShows(CUdeviceptr freed) SPILLWAY_EXCLUDES(kStateLock);
  CUresult AwaitMemory(Range* range) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  void AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void FillWhatIsEmpty(const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  CUresult MakeWhatItAwaits(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void MakeBeforeMemory(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult MakeBeforeOperation(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits, bool* is_ours)
      SPILLWAY_EXCLUDES(kStateLock);

  // Looks at the work of new kernels.
  bool BeginNew() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  Finding LookAt(const Addresses& addresses, const TouchSet& set) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool AwaitWork(Use use) SPILLWAY_EXCLUDES(kStateLock);
  bool AnyAwayHoldsUnexplained(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  std::vector<MemoryScan::Part> PartsReached(const Addresses& addresses, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);

  void FollowSchedule() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool IsOverBudget() SPILLWAY_EXCLUDES(kStateLock);

  void Find(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  void Enter(TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  void OrderBehind(Tracked* memory, const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  CUresult BeginSlowly(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  enum class Entry { kEntered, kRefused, kTryAgain };
  Entry TryToEnter(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);

  JobState state_;
  Waits waits_{state_};
  CallRecorder recording_{state_};
  StoredAddresses stored_{state_};
  MemoryScan scan_{state_, waits_, stored_};
  Parking parking_;
  Eviction eviction_{state_, waits_, parking_};
  Restores restores_{state_, waits_, parking_, eviction_};
  DeferredFrees frees_{state_};
  ScratchMemory scratch_{state_, parking_, eviction_};
  RecomputeRecords records_{state_, frees_, scratch_, this};
  Replays replays_{state_, waits_, parking_, eviction_, restores_, frees_, scratch_};
  InputCopies input_copies_{state_, eviction_, frees_, replays_};
  RepeatProofs proofs_{state_, waits_, frees_, scratch_, records_, replays_};
  PlanFollower plan_{state_, records_, replays_};
  // Constant after construction.
  BudgetSchedule schedule_;
  // Synchronises itself.
  std::atomic<std::int64_t> link_permille_{1000};
  // Guarded by the state lock.
  PassedThrough passed_through_ SPILLWAY_GUARDED_BY(kStateLock);
  size_t peers_bytes_ SPILLWAY_GUARDED_BY(kStateLock) = 0;  // what stayed for them from the first one on
  Holds holds_ SPILLWAY_GUARDED_BY(kStateLock){&state_.counters};
  std::uint64_t looks_from_launch_ SPILLWAY_GUARDED_BY(kStateLock) = 0;  // the next, after one in vain
};

}  // namespace spillway::interposer
