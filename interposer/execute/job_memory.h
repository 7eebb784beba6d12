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
// The code: job_memory.cpp (allocations, answers), and job_memory_*.cpp: calls (Begin to End), room (making it), contents (what
// memory holds), idle (parking), free_waits, census, looks (at the work of new kernels), host (memory of the host's), record (what
// the recorder is told), plan, recompute, proof and scratch (what is run again: Note [Recipes]), lease (host memory and the link as
// granted), roles (what calls promise).
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
#include "interposer/execute/counters.h"
#include "interposer/execute/executor.h"
#include "interposer/execute/free_memory.h"
#include "interposer/execute/free_promises.h"
#include "interposer/execute/holds.h"
#include "interposer/execute/job_snapshot.h"
#include "interposer/execute/plan_walk.h"
#include "interposer/execute/recipes.h"
#include "interposer/execute/residency.h"
#include "interposer/execute/shared_memory.h"
#include "interposer/execute/slabs.h"
#include "interposer/execute/stall_clock.h"
#include "interposer/execute/touch_set.h"
#include "interposer/execute/trust.h"
#include "interposer/execute/vain_waits.h"
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

  bool MightBeManaged(CUdeviceptr word) const { return ledger_.MightBeManaged(word); }
  // Of all words that might be.
  WordBounds Bounds() const { return {ledger_.lowest(), ledger_.highest()}; }
  // Besides out of memory: a copy or query that names freed memory is CUDA_ERROR_INVALID_VALUE, as bare; a launch may
  // carry stale addresses that it does not use. In a context that is beyond use, the context's own error.
  CUresult Begin(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  void End(TouchSet* set, Effect effect);
  // After End, when the driver accepted the call: what it puts into memory.
  void Wrote(const Transfers& transfers, const TouchSet& set) SPILLWAY_EXCLUDES(state_);
  // A call is about to be made of which nothing is known: a kernel seen for the first time, a copy whose payload another
  // may still change. Returns when it can do no harm.
  void SomethingNew() SPILLWAY_EXCLUDES(making_, state_);
  // After End of a launch that awaits a look; `ran` when the driver accepted it. True when its work was looked at: the
  // kernel is not new any more.
  bool EndNew(const Addresses& addresses, const TouchSet& set, bool ran) SPILLWAY_EXCLUDES(making_, state_);
  // Kernels allocate memory of their own, in which nobody can look for addresses.
  static void HeapIsUsed() { heap_is_used.store(true, std::memory_order_relaxed); }
  // A device variable of the program, to be looked through with the rest.
  void KnowGlobal(CUdeviceptr base, size_t bytes, const void* module) SPILLWAY_EXCLUDES(state_);
  // Memory of the host's is about to go: nothing lies there any more.
  void ForgetHost(CUdeviceptr base, size_t bytes) SPILLWAY_EXCLUDES(state_);
  // This module or library is about to be unloaded.
  void ForgetGlobals(const void* module) SPILLWAY_EXCLUDES(making_, state_);

  // The library's call has ended, and all its work is enqueued.
  void CallEnded(const LibraryCall& call) SPILLWAY_EXCLUDES(making_, state_);
  // All bytes are somewhere, and no recipe is left: memory may be used, or kernels be gone, without our noticing. False when
  // some could not be made again.
  bool EndRecipes() SPILLWAY_EXCLUDES(making_, state_);
  // An operation of this token (scheduler::TokenOf) has been proved to be repeatable.
  bool MayReplay(std::uint64_t token) SPILLWAY_EXCLUDES(state_);
  // Before the first allocation. For tests: what can be made again is dropped at once. There is no budget (spare_memory.h).
  void DropEagerly() { drops_eagerly_ = true; }
  void GiveBackWhatIsFreed() SPILLWAY_EXCLUDES(state_);

  // From now on the range stays where it is, on the device, until the owner's hold ends (holds.h). To be called between
  // Begin and End of a call that names the address; small allocations stay anyway.
  void Hold(std::uint64_t owner, CUdeviceptr address, Unmovable why) SPILLWAY_EXCLUDES(state_);
  void EndHold(std::uint64_t owner) SPILLWAY_EXCLUDES(state_);
  // The same in two steps, for owners whose number may be another's as soon as they are destroyed.
  Holds::Held TakeHold(std::uint64_t owner) SPILLWAY_EXCLUDES(state_);
  void EndHold(Holds::Held held) SPILLWAY_EXCLUDES(state_);
  void PutHoldBack(std::uint64_t owner, Holds::Held held) SPILLWAY_EXCLUDES(state_);

  // Another device's work may use the job's memory, also where no call of ours names it: until DenyPeer all of it is on the
  // device, and no more is granted than the budget. CUDA_ERROR_PEER_ACCESS_UNSUPPORTED while more than that is allocated.
  CUresult AllowPeer(CUdevice peer) SPILLWAY_EXCLUDES(making_, state_);
  void DenyPeer(CUdevice peer) SPILLWAY_EXCLUDES(making_, state_);
  // The same for one allocation, of a pool: until DenyPeerAt, or its free, it stays. What shares a slab with it is open, too.
  CUresult AllowPeerAt(CUdeviceptr address, CUdevice peer) SPILLWAY_EXCLUDES(making_, state_);
  void DenyPeerAt(CUdeviceptr address, CUdevice peer, bool is_last) SPILLWAY_EXCLUDES(making_, state_);

  // Brings the allocation to the device, where it stays until EndHold(owner), and lets others have its memory.
  CUresult Share(std::uint64_t owner, CUdeviceptr address, SharedMemory* out)
      SPILLWAY_EXCLUDES(making_, state_);
  bool IsShareable() SPILLWAY_EXCLUDES(state_);

  bool IsAway(CUdeviceptr address);
  // Copies `bytes` from an allocation that is away out of its host copy; false when it is not away.
  bool ReadAway(CUdeviceptr source, void* destination, size_t bytes);

  // Allocations that the driver serves but that count against the budget: charged before, noted when made.
  bool Charge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);
  void Discharge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);
  void NotePassedThrough(std::uint64_t key, size_t bytes);  // key: its address or handle
  // What is noted under the key, which is forgotten, but stays charged; 0 when nothing is.
  size_t TakePassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(state_);
  // The driver has freed it.
  void ForgetPassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(state_);
  // Another context than the job's.
  void ContextDestroyed(CUcontext context) SPILLWAY_EXCLUDES(state_);

  // What frees have promised (free_promises.h): the stream's next operation comes behind it; it is complete. False: none was open.
  // Shows: the program has enqueued what no other hook tells of.
  void KeepPromises(StreamName stream) SPILLWAY_EXCLUDES(state_);
  bool AwaitPromises() SPILLWAY_EXCLUDES(state_);
  void Shows(StreamName stream) SPILLWAY_EXCLUDES(state_);

  // A synchronising call: what it covers is noted before, and marked complete after it succeeded.
  std::vector<Use> IssuedOn(StreamName stream);
  std::vector<Use> IssuedIn(CUcontext context) SPILLWAY_EXCLUDES(state_);
  static void Completed(const std::vector<Use>& uses);
  void StreamDestroyed(CUstream stream);
  // The program is about to wait for that.
  void AboutToBlock(const std::vector<Use>& awaited) SPILLWAY_EXCLUDES(state_);
  // The program has waited for work on the device.
  void Waited();
  // The stream is about to wait for something that the program does when it likes.
  void AboutToWait(StreamName stream);
  // The stream is about to join a capture: its work so far is marked.
  void TakeCheckpoint(StreamName stream);
  // A stream is about to capture: all streams' work so far is marked.
  void TakeCheckpoints() SPILLWAY_EXCLUDES(state_);
  // Captures in the process; they may begin before there is a job.
  static bool Captures(StreamName stream);
  static void CaptureBegan() { captures.fetch_add(1, std::memory_order_relaxed); }
  static void CaptureEnded() { captures.fetch_sub(1, std::memory_order_relaxed); }
  static bool CapturesGoOn() { return captures.load(std::memory_order_relaxed) > 0; }

  // An address of ours, whether something lives there or not.
  bool Owns(CUdeviceptr address) SPILLWAY_EXCLUDES(state_);
  // An address of ours at which nothing lives any more.
  bool IsFreed(CUdeviceptr address);
  // The allocation that the address lies in; false when it is not managed.
  bool Describe(CUdeviceptr address, Allocation* out);
  // What the program is told to be free; the device's own figures are those of all that use it.
  size_t ShownFreeBytes(size_t device_free_bytes, size_t device_bytes) SPILLWAY_EXCLUDES(state_);
  size_t FreeBytes();  // of the budget
  size_t budget_bytes() const { return budget_bytes_.load(std::memory_order_relaxed); }
  // The budget is another one from now on; what is held beyond it stays until MeetBudget, or until calls take it away. Waits for nothing.
  void GrantBudget(size_t bytes) SPILLWAY_EXCLUDES(state_);
  // Likewise, but only until the next one, which is near: who needs more waits for that, until then at the latest (of MonotonicNs).
  void HoldBudget(size_t bytes, std::uint64_t until_ns) SPILLWAY_EXCLUDES(state_);
  // Returns when the budget is met, or when nothing more can be done for that at the moment: then calls go on to take memory away
  // until it is.
  void MeetBudget() SPILLWAY_EXCLUDES(making_, state_);
  void SetBudget(size_t bytes) SPILLWAY_EXCLUDES(making_, state_);  // both
  // What the agent grants beside the budget (job_memory_lease.cpp). Host memory: never more than the launcher allows, and never less
  // than what has been granted to the program needs. The link: thousandths, for the planner.
  void SetHostLimit(size_t bytes) SPILLWAY_EXCLUDES(state_);
  size_t own_host_limit_bytes() const { return own_host_limit_bytes_; }
  void SetLinkPermille(std::int64_t permille) { link_permille_.store(permille, std::memory_order_relaxed); }
  std::int64_t link_permille() const { return link_permille_.load(std::memory_order_relaxed); }
  bool JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file) SPILLWAY_EXCLUDES(state_);
  // For tests: the budget at certain launches (lease/budget_schedule.h). Before the first allocation.
  void Schedule(BudgetSchedule schedule) { schedule_ = std::move(schedule); }
  CUcontext context() const { return context_; }
  int device() const { return device_; }
  Recorder& recorder() { return recorder_; }
  // From now on what the job does is recorded, whatever it wants.
  void BeginRecording() SPILLWAY_EXCLUDES(state_);
  std::int64_t PlannableBytes() SPILLWAY_EXCLUDES(state_);  // the budget, less what cannot move
  // From its next iteration on the job follows the plan: what it says moves ahead of need, everything else as without one.
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) SPILLWAY_EXCLUDES(state_);
  // For the trace: a plan's iterations took `planned_ns`, and without it `without_ns`; 0: not known.
  void TraceDropped(std::int64_t planned_ns, std::int64_t without_ns);
  // Plans are not carried out now.
  bool Parks() SPILLWAY_EXCLUDES(state_);

  // While one lives the calling thread waits in a call for what was enqueued on the device: the process is not idle.
  class Blocked {
    const base::ScopedCount blocked_{&blocked_threads};
  };

  using Snapshot = JobSnapshot;
  Snapshot Read();
  // For code that may run in a signal handler: false when the lock is not to be had soon.
  bool TryRead(Snapshot* out);

  // Whether the device is at something that the program enqueued, and that does not wait for the program. Waits for nothing.
  bool HasWork() SPILLWAY_EXCLUDES(state_);

  // The context is going away: gives everything back to the driver.
  void ReleaseAll();

 private:
  bool Admits(size_t size_bytes) SPILLWAY_REQUIRES(state_);
  bool HasRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(state_);
  bool FitsBudget(size_t size_bytes) const SPILLWAY_REQUIRES(state_);
  void ChangeBudget(size_t bytes, std::uint64_t held_until_ns) SPILLWAY_EXCLUDES(state_);
  bool IsHeldBack() const;
  // `fits` is called with the state lock held.
  void AwaitBudget(base::FunctionRef<bool()> fits) SPILLWAY_EXCLUDES(state_);
  size_t HostBytesFor(size_t wanted_bytes, size_t largest_bytes) const SPILLWAY_REQUIRES(state_);
  // `more_bytes`: of an allocation that is about to be known.
  void UpdateHostLimit(size_t more_bytes = 0) SPILLWAY_REQUIRES(state_);
  void NoteHostNeed(size_t wanted_bytes, size_t largest_bytes) SPILLWAY_REQUIRES(state_);
  void AwaitHostLimit(size_t size_bytes) SPILLWAY_EXCLUDES(state_);
  bool LacksHostGrant(size_t size_bytes) SPILLWAY_REQUIRES(state_);
  bool HostMayHold(size_t bytes) SPILLWAY_REQUIRES(state_);
  size_t HostMayHoldBytes() SPILLWAY_REQUIRES(state_);
  size_t UsedBytes() const SPILLWAY_REQUIRES(state_);
  GivenMemory Given() SPILLWAY_REQUIRES(state_);
  void AwaitTurn(protocol::Direction direction) SPILLWAY_EXCLUDES(state_);
  void AwaitTurnOf(std::int64_t wait_ns) SPILLWAY_EXCLUDES(state_);
  CUresult ShareResident(CUdeviceptr address, SharedMemory* out) SPILLWAY_EXCLUDES(state_);
  Snapshot ReadLocked() SPILLWAY_REQUIRES(state_);
  bool IsInCall() const SPILLWAY_REQUIRES(state_);
  CUresult AllocateSmall(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(making_, state_);
  CUresult AllocateRange(size_t bytes, CUdeviceptr* out) SPILLWAY_EXCLUDES(making_, state_);
  void AwaitRoomFor(size_t size_bytes, bool even_held) SPILLWAY_EXCLUDES(making_, state_);
  Range* NewRange(size_t bytes, size_t size_bytes, bool* awaits_freed) SPILLWAY_REQUIRES(state_);
  CUresult Refused() SPILLWAY_REQUIRES(state_);
  void Know(Range* range) SPILLWAY_REQUIRES(state_);
  CUresult AddSlab(size_t bytes) SPILLWAY_EXCLUDES(making_, state_);
  CUresult AddSlabWhileMaking(size_t bytes) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void TellOfFree(const Allocation* found) SPILLWAY_REQUIRES(state_);
  void GiveBack(Allocation* found, const UseList& busy) SPILLWAY_REQUIRES(state_);
  void MarkEnds(const UseList& busy) SPILLWAY_REQUIRES(state_);
  void GiveBackSpare() SPILLWAY_EXCLUDES(making_, state_);
  void GiveBackSpareSlabs() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  CUresult Health() SPILLWAY_EXCLUDES(state_);
  void AwaitSpare(size_t size_bytes) SPILLWAY_EXCLUDES(state_);
  void DischargeLocked(size_t bytes, Unmovable reason = Unmovable::kDriverServed) SPILLWAY_REQUIRES(state_);
  Allocation* FindUsable(CUdeviceptr address) SPILLWAY_REQUIRES(state_);
  Allocation* FindBase(CUdeviceptr base) SPILLWAY_REQUIRES(state_);

  bool IsForeign(StreamName stream) SPILLWAY_EXCLUDES(state_);
  CUresult BeginEither(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(making_, state_);
  bool BeginAtOnce(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set);
  CUresult BeginLocked(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(making_, state_);
  void Withdraw(TouchSet* set) SPILLWAY_EXCLUDES(state_);
  static bool UseBlocksAtOnce(const TouchSet& set);
  static void EndAtOnce(const TouchSet& set);
  void EndLocked(TouchSet* set, Effect effect) SPILLWAY_EXCLUDES(state_);
  void OpenGate(SlabBlock* block, StreamState* stream) SPILLWAY_REQUIRES(state_);

  // What memory holds.
  void WroteRow(const Transfer& transfer, CUdeviceptr to, CUdeviceptr from, Overwrite by)
      SPILLWAY_EXCLUDES(state_);
  void PutAll(CUdeviceptr to, size_t bytes, const std::vector<HeldWord>& found) SPILLWAY_REQUIRES(state_);
  Contents& ContentsAt(CUdeviceptr address) SPILLWAY_REQUIRES(state_);
  bool ReachesTooMuch(const TouchSet& set) const SPILLWAY_REQUIRES(state_);
  void AskBeforeGranting(size_t size_bytes) SPILLWAY_EXCLUDES(making_, state_);
  void BeginParkingIfDue() SPILLWAY_EXCLUDES(making_, state_);
  void BeginParking() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void Follow(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(state_);
  void Reach(CUdeviceptr word, TouchSet* set, std::vector<Tracked*>* holders) SPILLWAY_REQUIRES(state_);
  bool MustWithdraw(Effect effect, const TouchSet& set) const;
  void ReadHost(TouchSet* set) const;
  void ReadHostAt(CUdeviceptr word, TouchSet* set) const;
  bool FoundNewOnHost(const TouchSet& set) const;
  bool LeadsToHeldWords(CUdeviceptr word) const;
  bool IsInGlobal(CUdeviceptr address) const SPILLWAY_REQUIRES(state_);

  // Parking.
  std::uint64_t Launches() const SPILLWAY_REQUIRES(state_) { return timeline_.Sum().launches; }
  bool MayPark() SPILLWAY_EXCLUDES(state_);
  bool MustStay() const SPILLWAY_REQUIRES(state_) { return trust_.MustStay() || HasPeers(); }
  bool HasPeers() const { return peer_count_.load(std::memory_order_relaxed) > 0; }
  void SetPeer(CUdevice peer, bool allowed) SPILLWAY_REQUIRES(state_);
  bool SetPeerOf(CUdeviceptr address, CUdevice peer, bool allowed) SPILLWAY_EXCLUDES(state_);
  bool BringAll() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool MayMoveNow() const SPILLWAY_REQUIRES(state_) { return !waits_in_vain_ && !MustStay(); }
  bool MustPrepare() const SPILLWAY_REQUIRES(state_) { return !prepared_; }
  bool PrepareToMove() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void EndMoving() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool AwaitIdle() SPILLWAY_EXCLUDES(state_);
  bool IsIdle() SPILLWAY_REQUIRES(state_);
  bool AwaitProgress(base::FunctionRef<bool()> is_there, VainWaits* vain_waits = nullptr)
      SPILLWAY_EXCLUDES(state_);
  void AwaitRestores() SPILLWAY_EXCLUDES(state_);
  void AwaitBeforeFree() SPILLWAY_EXCLUDES(state_);
  void AwaitWhatShows(CUdeviceptr freed) SPILLWAY_EXCLUDES(state_);
  void UpdateParking() SPILLWAY_REQUIRES(state_);
  void UpdateEverything() SPILLWAY_REQUIRES(state_);
  bool AwaitsFreed(const Range& range) const SPILLWAY_REQUIRES(state_);
  bool IsParkedAnew(Range* range) SPILLWAY_REQUIRES(state_);
  CUresult AwaitMemory(Range* range) SPILLWAY_EXCLUDES(making_, state_);

  // The census.
  struct Part {
    CUdeviceptr base;
    size_t bytes;
    Range* range;  // null: part of a slab, or outside our memory
  };
  void MakeCensus() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void FindVariables() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  std::vector<Part> PartsOnDevice() SPILLWAY_REQUIRES(state_);
  enum class Depth { kCensus, kLook };  // how much of large ranges is read
  bool HoldsUnexplained(const Part& part, const HostBuffer& staging, Depth depth) SPILLWAY_EXCLUDES(state_);
  static size_t WholeBytes(Depth depth);
  bool TakeStaging(HostBuffer* out) SPILLWAY_REQUIRES(state_);
  std::vector<Range*> LiveRanges() SPILLWAY_REQUIRES(state_);
  bool HostCopyHoldsUnexplained(const Range& range, Depth depth) SPILLWAY_REQUIRES(state_);
  bool AwaitReadBack(const CUDA_MEMCPY2D& copy) SPILLWAY_EXCLUDES(state_);
  bool HostCopiesHoldUnexplained() SPILLWAY_EXCLUDES(state_);
  bool AnyUnexplained(const std::byte* data, size_t bytes, CUdeviceptr at) SPILLWAY_REQUIRES(state_);
  bool IsUnexplained(const HeldWord& held) SPILLWAY_REQUIRES(state_);

  // Roles.
  static Role RoleAt(const TouchSet& set, size_t index) {
    return index < set.roles.size() ? set.roles[index] : Role::kReadsAndWrites;
  }
  static bool MayWrite(const TouchSet& set, size_t index, Effect effect) {
    return effect != Effect::kReads && RoleAt(set, index) != Role::kReads;
  }
  static void AssignRoles(const Addresses& addresses, TouchSet* set);
  static Role RoleOf(const TouchSet& set, const Range* range);
  static bool AnyEmpty(const TouchSet& set);
  void AwaitOverwrites(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  void FillWhatIsEmpty(const TouchSet& set) SPILLWAY_EXCLUDES(state_);

  // Recipes.
  void BeginRecipe(const Addresses& addresses, TouchSet* set) SPILLWAY_EXCLUDES(state_);
  std::unique_ptr<Recipe> RecipeOf(const Addresses& addresses, const TouchSet& set,
                                   size_t* lacks_scratch_bytes) SPILLWAY_EXCLUDES(state_);
  bool AddMemory(const TouchSet& set, const Addresses& addresses, Recipe* recipe) const;
  bool MoveAside(const Claims& claims, Recipe* recipe, size_t* lacks_scratch_bytes) SPILLWAY_EXCLUDES(state_);
  CUdeviceptr ScratchFor(size_t bytes) SPILLWAY_REQUIRES(state_);
  bool NamesAllClaimed(const Claims& claims, const Recipe& recipe) const;
  bool LeadsElsewhere(const RecordedLaunch& launch) const;
  bool MayBegin(const Recipe& recipe, const TouchSet& set) SPILLWAY_REQUIRES(state_);
  bool WaitingWorkMayUse(const Recipe& recipe, const StreamState* stream) SPILLWAY_REQUIRES(state_);
  bool MayDropAny() SPILLWAY_REQUIRES(state_);
  void NoteMade(const TouchSet& set) SPILLWAY_EXCLUDES(state_);
  void TakeScratch(size_t bytes) SPILLWAY_EXCLUDES(making_, state_);
  bool MayTakeScratch(size_t size_bytes) SPILLWAY_EXCLUDES(state_);
  bool Drop(Range* range) SPILLWAY_REQUIRES(state_);
  void DropAll(Use last) SPILLWAY_EXCLUDES(state_);
  bool AwaitsItsCall(Range* range) SPILLWAY_REQUIRES(state_);
  void DropOrSendAway(const PlanStep::Allocations& allocations) SPILLWAY_REQUIRES(state_);
  void DropWhatIsDue(Range* range) SPILLWAY_REQUIRES(state_);
  using FreesThatAreDue = base::InlineVector<Tracked*, 16>;
  void ForgetOne(const Recipe* recipe, FreesThatAreDue* due) SPILLWAY_REQUIRES(state_);
  void Forget(const Recipe* recipe) SPILLWAY_REQUIRES(state_);
  void PutOffFree(Tracked* memory) SPILLWAY_REQUIRES(state_);
  bool ServesPlan(const Recipe& recipe) SPILLWAY_REQUIRES(state_);
  bool IsHeldForPlan(const Tracked* memory) SPILLWAY_REQUIRES(state_);
  bool IsStillNeeded(Tracked* memory) SPILLWAY_REQUIRES(state_);
  using InVain = base::InlineVector<const Range*, 8>;
  Range* FirstThatFreesAwait(bool even_held, const InVain& in_vain) SPILLWAY_REQUIRES(state_);
  // `even_held` is called with the state lock held.
  void FinishFrees(base::FunctionRef<bool()> even_held) SPILLWAY_EXCLUDES(making_, state_);
  void ForgetAfterCall(const Recipe* recipe) SPILLWAY_REQUIRES(state_);
  ToMake Outdate(Tracked* memory) SPILLWAY_REQUIRES(state_);
  ToMake FirstToMake(const Addresses& addresses, Effect effect, const TouchSet& set)
      SPILLWAY_REQUIRES(state_);
  bool SetAside(SlabBlock* input) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  SlabBlock* RoomAside(size_t bytes) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool MoveRecipes(SlabBlock* from, SlabBlock* to) SPILLWAY_REQUIRES(state_);
  CUresult MakeWhatItAwaits(const Addresses& addresses, Effect effect, TouchSet* set)
      SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  CUresult MakeAgain(Range* wanted, StreamState* stream, TraceCause why) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  CUresult MakeOneAgain(Range* range, StreamState* stream, TraceCause why) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  using Inputs = base::InlineVector<Range*, 8>;
  bool PrepareInputs(const Inputs& inputs) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  CUresult MakeWhereParked(Range* range, const Inputs& inputs) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  bool ParkWhatIsAway(std::span<Range* const> ranges) SPILLWAY_REQUIRES(state_);
  bool AwaitUsesWhereParked(Range* range, StallCause cause) SPILLWAY_EXCLUDES(state_);
  StreamState* StreamForReplay(StreamState* asked) SPILLWAY_REQUIRES(state_);
  CUresult LaunchAgain(Recipe* recipe, StreamState* stream, TraceCause why) SPILLWAY_REQUIRES(state_);
  void NoteReplay(Tracked* memory, Use use) SPILLWAY_REQUIRES(state_);
  bool EndRecipesWhileMaking() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void EndRecipesIfUnproven() SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void MakeBeforeMemory(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(making_, state_);
  CUresult MakeBeforeOperation(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(making_, state_);
  bool AnyToRerun(const PlanStep& step) SPILLWAY_EXCLUDES(state_);
  void Rerun(const PlanStep& step, StreamName stream) SPILLWAY_EXCLUDES(making_, state_);
  void FreeInOrder(CUdeviceptr base, const StreamName* stream, bool waits, bool* is_ours)
      SPILLWAY_EXCLUDES(state_);

  // Their proof.
  void Prove(std::uint64_t id) SPILLWAY_EXCLUDES(making_, state_);
  struct Proof;
  bool BeginProof(std::uint64_t id, Proof* proof) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool RunTwice(Proof* proof) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool AwaitFirst(Use use, std::uint64_t id) SPILLWAY_EXCLUDES(state_);
  void EndProof(Proof* proof, bool is_complete) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  bool AwaitQuietly(Use use) SPILLWAY_EXCLUDES(state_);
  struct OutputPiece {
    size_t offset = 0;
    size_t bytes = 0;
  };
  static std::vector<OutputPiece> OutputPiecesOf(const Range& range);
  bool KeepFirst(Proof* proof) SPILLWAY_EXCLUDES(state_);
  bool CompareSecond(Proof* proof) SPILLWAY_EXCLUDES(state_);
  void PutBack(const Proof& proof) SPILLWAY_EXCLUDES(state_);
  enum class Toward : bool { kHost, kDevice };
  bool CopyPiece(const Proof& proof, OutputPiece piece, Toward toward) SPILLWAY_EXCLUDES(state_);

  // Looks at the work of new kernels.
  bool BeginNew() SPILLWAY_EXCLUDES(making_, state_);
  Finding LookAt(const Addresses& addresses, const TouchSet& set) SPILLWAY_EXCLUDES(making_, state_);
  bool AwaitWork(Use use) SPILLWAY_EXCLUDES(state_);
  bool AnyAwayHoldsUnexplained(const TouchSet& set) SPILLWAY_REQUIRES(state_);
  std::vector<Part> PartsReached(const Addresses& addresses, const TouchSet& set) SPILLWAY_REQUIRES(state_);
  void LetGo(const std::vector<Part>& parts) SPILLWAY_REQUIRES(state_);

  // What is told to the recorder.
  static std::span<Range* const> RangesOf(const TouchSet& set);
  static base::InlineVector<RecordedTouch, 32> TouchesOf(const TouchSet& set, Effect effect);
  static Shape ShapeOf(const TouchSet& set);
  void RecordIfItIsTime(size_t more_bytes) SPILLWAY_REQUIRES(state_);
  void BeginRecordingLive() SPILLWAY_REQUIRES(state_);
  void BeginSample(Effect effect, TouchSet* set);
  void BeginTraced(TouchSet* set);
  void EndTraced(const TouchSet& set, Effect effect);
  void Record(const TouchSet& set, Effect effect);

  void FollowSchedule() SPILLWAY_EXCLUDES(making_, state_);
  bool IsOverBudget() SPILLWAY_EXCLUDES(state_);

  // The plan.
  void TraceAdopted(const scheduler::LivePlan& plan);
  std::uint64_t MovedBytes() SPILLWAY_EXCLUDES(state_);
  void TellPlan(Effect effect, TouchSet* set);
  void FollowPlan(StreamName stream, Effect effect, TouchSet* set) SPILLWAY_EXCLUDES(state_);
  void BeginIteration(StreamName stream, const PlanStep& step) SPILLWAY_EXCLUDES(state_);
  bool NoteIteration(const PlanStep& step) SPILLWAY_EXCLUDES(state_);
  void AskFor(const PlanStep::Allocations& allocations, Effect effect) SPILLWAY_EXCLUDES(state_);
  void EndPlanned(const PlanStep& step) SPILLWAY_EXCLUDES(state_);
  void BringBack(const PlanStep::Allocations& asked_for) SPILLWAY_EXCLUDES(state_);
  void SendAway(const PlanStep& step) SPILLWAY_EXCLUDES(state_);

  bool OthersMayEnd(std::uint64_t deadline_ns) SPILLWAY_REQUIRES(state_);
  template <class Ranges>
  bool AllOnDevice(const Ranges& ranges) const SPILLWAY_REQUIRES(state_);
  void Find(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(state_);
  void Enter(TouchSet* set) SPILLWAY_REQUIRES(state_);
  void OrderBehind(Tracked* memory, const TouchSet& set) SPILLWAY_REQUIRES(state_);
  void OrderBehind(Tracked* memory, StreamState* stream) SPILLWAY_REQUIRES(state_);
  CUresult OutOfMemory() const SPILLWAY_REQUIRES(state_);
  CUresult BeginSlowly(const Addresses& addresses, StreamName stream, Effect effect, TouchSet* set)
      SPILLWAY_EXCLUDES(making_, state_);
  enum class Entry { kEntered, kRefused, kTryAgain };
  Entry TryToEnter(const Addresses& addresses, Effect effect, TouchSet* set) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  bool MakeAllResident(TouchSet* set) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  base::InlineVector<Range*, 32> ThatFit(const TouchSet& set) SPILLWAY_REQUIRES(state_);
  bool CanUseParked(const TouchSet& set) SPILLWAY_EXCLUDES(state_);
  bool MakeResident(Range* range, Role role) SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  // `take_now` is called with the state lock held.
  bool MakeRoom(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now) SPILLWAY_REQUIRES(making_)
      SPILLWAY_EXCLUDES(state_);
  bool AwaitFreed(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now)
      SPILLWAY_REQUIRES(making_) SPILLWAY_EXCLUDES(state_);
  void AwaitPrefetches(StallCause cause) SPILLWAY_EXCLUDES(state_);
  bool StartMakingRoom(size_t bytes) SPILLWAY_REQUIRES(state_);
  bool RestoreOnDemand(Range* range, Role role) SPILLWAY_REQUIRES(state_);
  void GiveBackEmptySlabs() SPILLWAY_REQUIRES(state_);
  struct AwaitedUse {
    Use use;
    CUevent event;  // null: none can be recorded
  };
  using Awaited = base::InlineVector<AwaitedUse, 4>;
  Awaited NextToFree() SPILLWAY_REQUIRES(state_);
  Awaited WithEvents(const FirstUses& uses) SPILLWAY_REQUIRES(state_);
  void AwaitOneOf(const Awaited& awaited, StallCause cause) SPILLWAY_EXCLUDES(state_);
  void Await(Use use, CUevent event, StallCause cause) SPILLWAY_EXCLUDES(state_);
  StallClock::Moment BeginStall() SPILLWAY_EXCLUDES(state_);
  void Want(size_t bytes) SPILLWAY_REQUIRES(state_);

  // Constant after construction.
  const CUcontext context_;
  const int device_;
  const size_t own_host_limit_bytes_;
  BudgetSchedule schedule_;
  bool drops_eagerly_ = false, gives_back_ = false;
  // Synchronises itself.
  inline static constinit std::atomic<int> captures{0};
  inline static constinit std::atomic<int> blocked_threads{0};
  inline static constinit std::atomic<bool> heap_is_used{false};
  std::atomic<size_t> budget_bytes_;             // written with state_ held
  std::atomic<std::uint64_t> held_until_ns_{0};  // likewise; 0: the budget is one that stays
  std::atomic<std::int64_t> link_permille_{1000};
  std::atomic<int> calls_for_memory_{0};  // that wait for some, or make it
  std::atomic<size_t> put_off_bytes_{0};  // of put_off_; written with state_ held
  Recorder recorder_;
  JobTrace trace_;
  PlanWalk walk_;
  base::Mutex making_{base::LockRank::kMaking};
  base::Mutex state_{base::LockRank::kState};
  // Stands for all memory: every call that takes no lock names it, so that closing its gate sends all calls the slow way.
  Range everything_;
  std::atomic<bool> looks_{false};  // new kernels are looked at; written with state_ held
  std::atomic<bool>
      reads_host_;  // something may have left: launches look through memory of the host's; likewise
  // Guarded by state_.
  std::vector<ScratchPiece> scratch_
      SPILLWAY_GUARDED_BY(state_);  // for what recipes write aside; each larger than the one before
  Use scratch_use_ SPILLWAY_GUARDED_BY(state_);         // the last
  size_t aside_bytes_ SPILLWAY_GUARDED_BY(state_) = 0;  // small memory that is ours (SetAside)
  int locked_calls_ SPILLWAY_GUARDED_BY(state_) = 0;    // in progress, begun with the lock
  Counters counters_ SPILLWAY_GUARDED_BY(state_);
  StallClock stall_clock_ SPILLWAY_GUARDED_BY(state_);
  driver::MappingCalls calls_at_iteration_ SPILLWAY_GUARDED_BY(state_);  // all calls until it began
  driver::MappingCalls iteration_calls_ SPILLWAY_GUARDED_BY(state_);
  std::uint64_t censuses_at_iteration_ SPILLWAY_GUARDED_BY(state_) = 0;
  Timeline timeline_;                  // but for Known and Issue
  FreePromises promises_{&timeline_};  // but for Concern and TakeUnseenWork
  Ledger ledger_;                      // but for MightBeManaged and Find
  PassedThrough passed_through_ SPILLWAY_GUARDED_BY(state_);
  std::atomic<int> peer_count_{0};
  size_t peers_bytes_ SPILLWAY_GUARDED_BY(state_) = 0;  // what stayed for them from the first one on
  Holds holds_ SPILLWAY_GUARDED_BY(state_){&counters_};
  size_t largest_range_bytes_ SPILLWAY_GUARDED_BY(state_) = 0;
  size_t host_limit_bytes_ SPILLWAY_GUARDED_BY(state_);
  size_t host_need_bytes_ SPILLWAY_GUARDED_BY(state_) = 0;  // the most there was (job_memory_lease.cpp)
  std::uint64_t host_refused_ns_ SPILLWAY_GUARDED_BY(state_) = 0;  // when the agent last had no more for us
  Residency residency_ SPILLWAY_GUARDED_BY(state_);
  Executor executor_{&residency_, &timeline_, &counters_};      // guarded by state_, but for HasPending
  Recipes recipes_;                                             // guarded by state_, but for empty
  StreamState* replays_ SPILLWAY_GUARDED_BY(state_) = nullptr;  // a stream of ours for what no call's can do
  std::vector<Range*> put_off_ SPILLWAY_GUARDED_BY(state_);     // freed by the program, and needed by recipes
  Slabs slabs_ SPILLWAY_GUARDED_BY(state_);
  Trust trust_ SPILLWAY_GUARDED_BY(state_);
  Contents contents_ SPILLWAY_GUARDED_BY(state_);  // of managed memory
  Contents outside_
      SPILLWAY_GUARDED_BY(state_);  // of device variables and other memory that we do not manage
  struct Global {
    CUdeviceptr base;
    size_t bytes;
    const void* module;
    bool operator==(const Global&) const = default;
  };
  std::vector<Global> globals_ SPILLWAY_GUARDED_BY(state_);
  std::uint64_t libraries_found_ SPILLWAY_GUARDED_BY(making_) =
      0;                                                     // the last one whose variables are among them
  bool parking_is_due_ SPILLWAY_GUARDED_BY(state_) = false;  // before the next new call is made
  std::uint64_t looks_from_launch_ SPILLWAY_GUARDED_BY(state_) = 0;  // the next, after one in vain
  // Of the time in which one thread makes memory:
  bool prepared_ SPILLWAY_GUARDED_BY(state_) = false;  // it has asked whether it must wait for the device
  bool device_is_idle_ SPILLWAY_GUARDED_BY(state_) = false;  // and must stay so: no call begins
  VainWaits vain_waits_ SPILLWAY_GUARDED_BY(state_);
  bool waits_in_vain_ SPILLWAY_GUARDED_BY(state_) =
      false;  // the device does not become idle, and nothing may move
};

}  // namespace spillway::interposer
