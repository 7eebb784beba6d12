#include "interposer/execute/own_memory.h"

#include <utility>

#include "base/pause.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/captures.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

void OwnMemory::Adopt(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
                      const OwnMemoryKind& kind) {
  const StateLock lock(state_.locks);
  state_.counters.UnmovableFor(Unmovable::kOwnMapping).bytes -= bytes;
  allocations_.Know(state_.residency.Adopt(base, bytes, handle, kind));
}

// Nobody may find the memory at its old address from here on, so its records end first: a replay
// would write there.
CUresult OwnMemory::Move(CUdeviceptr* base, CUdeviceptr to) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  if (!replays_.EndRecordsWhileMaking()) return CUDA_ERROR_OUT_OF_MEMORY;
  for (;;) {
    Waits::Awaited next;
    Range* away = nullptr;
    {
      const StateLock lock(state_.locks);
      Range* const range = AsRange(state_.ledger.Find(*base));
      if (IsIdle(range, &next)) {
        if (!to || range->place == Place::kDevice) {
          const CUresult result = MoveNow(range, to);
          *base = range->base;
          return result;
        }
        away = range;
        state_.residency.Pin(range);
      }
    }
    if (away) {
      const bool is_there = restores_.MakeResident(away, Role::kReadsAndWrites);
      parking_.EndMoving();
      const StateLock lock(state_.locks);
      state_.residency.Unpin(away);
      if (!is_there) return CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!next.empty()) {
      waits_.AwaitOneOf(next, StallCause::kDemand);
    } else {
      base::YieldToOthers();  // another thread's call names it
    }
  }
}

// `next`: what must be complete first, if that may be waited for.
bool OwnMemory::IsIdle(Range* range, Waits::Awaited* next) {
  if (range->place == Place::kLeaving) state_.residency.departures().Cancel(range);
  if (!state_.residency.uses().CloseFastPath(range)) return false;
  for (UseList* uses : {&range->uses, &range->ready_after}) {
    if (state_.timeline.AllDone(uses)) continue;
    *next = waits_.WithEvents(FirstUses(state_.timeline.OneToAwait(uses)));
    if (!next->empty()) return false;
  }
  return true;
}

// To the recorder and the plan it is another allocation from now on. What memory holds of our
// addresses it keeps.
CUresult OwnMemory::MoveNow(Range* range, CUdeviceptr to) {
  const CUdeviceptr from = range->base;
  ForgetInBooks(range);
  const bool moved = state_.residency.Relocate(range, to);
  if (moved) {
    state_.contents.Copy(range->base, state_.contents, from, range->size_bytes, {});
    state_.contents.Freed(from, range->size_bytes);
  }
  const bool held_content = !range->is_fresh;
  allocations_.Know(range);
  if (held_content) range->is_fresh = false;
  return moved ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult OwnMemory::Pin(std::uint64_t owner, CUdeviceptr base, Unmovable why,
                        CUmemGenericAllocationHandle* handle) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  held_.Hold(owner, base, why);  // from now on it does not leave
  bool is_there;
  {
    const MakingLock making(state_.locks);
    Range* range;
    {
      const StateLock lock(state_.locks);
      range = AsRange(state_.ledger.Find(base));
      state_.residency.Pin(range);
    }
    is_there =
        replays_.EndRecordsWhileMaking() && restores_.MakeResident(range, Role::kReadsAndWrites);
    parking_.EndMoving();
    const StateLock lock(state_.locks);
    state_.residency.Unpin(range);
    is_there = is_there && range->place == Place::kDevice;
    if (is_there) *handle = range->chunks.front()->handle;
    if (is_there) range->chunks.front()->is_shared = why != Unmovable::kOwnMapping;
    if (!is_there) state_.counters.NoteRefusedUnmovable(range->requested_bytes);
  }
  if (is_there) return CUDA_SUCCESS;
  held_.EndHold(owner);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void OwnMemory::Disown(CUdeviceptr base) {
  const StateLock lock(state_.locks);
  Range* const range = AsRange(state_.ledger.Find(base));
  ForgetInBooks(range);
  if (range->unmovable != Unmovable::kNo)
    state_.counters.UnmovableFor(range->unmovable).bytes -= range->size_bytes;
  state_.counters.UnmovableFor(Unmovable::kOwnMapping).Add(range->size_bytes);
  state_.contents.Freed(base, range->size_bytes);
  state_.residency.Disown(range);
}

void OwnMemory::ForgetInBooks(Range* range) {
  frees_.ReportFree(range);
  state_.executor.Freed(range->id);
  state_.ledger.RemoveRange(range);
}

}  // namespace spillway::interposer
