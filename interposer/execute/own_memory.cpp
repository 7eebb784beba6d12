#include "interposer/execute/own_memory.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/pause.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/state/captures.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

// How long for work that waits for the program. Bare, it would fault.
constexpr std::uint64_t kIdlePatienceNs = 10'000'000'000;

}  // namespace

void OwnMemory::Adopt(CUdeviceptr base, size_t bytes, CUmemGenericAllocationHandle handle,
                      const OwnMemoryKind& kind) {
  const StateLock lock(state_.locks);
  state_.counters.UnmovableFor(Unmovable::kOwnMapping).bytes -= bytes;
  allocations_.Know(state_.residency.Adopt(base, bytes, handle, kind));
}

CUresult OwnMemory::Move(CUdeviceptr* base, CUdeviceptr to) {
  CUresult result = CUDA_SUCCESS;
  const bool needs_device = to != 0;  // the driver says whether it can be mapped there
  const CUresult waited =
      WhenIdle(*base, needs_device, [&](Range* range) SPILLWAY_REQUIRES(kStateLock) {
        result = MoveNow(range, to);
        *base = range->base;
      });
  return waited == CUDA_SUCCESS ? result : waited;
}

CUresult OwnMemory::End(CUdeviceptr base) {
  return WhenIdle(base, false, [&](Range* range) SPILLWAY_REQUIRES(kStateLock) {
    EndInBooks(range);
    state_.counters.wanted_bytes -= range->size_bytes;
    ++state_.counters.frees;
    state_.residency.End(range);
    state_.residency.TraceMemory();
  });
}

// Nobody may find the memory at its address afterwards, so its records end first: a replay would
// write there. `act` is called under the lock that shows the memory idle, so nothing begins to use
// or to move it in between.
CUresult OwnMemory::WhenIdle(CUdeviceptr base, bool needs_device,
                             base::FunctionRef<void(Range*)> act) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  if (!replays_.EndRecordsWhileMaking()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t deadline_ns = base::MonotonicNs() + kIdlePatienceNs;
  while (base::MonotonicNs() < deadline_ns) {
    Waits::Awaited next;
    Range* away = nullptr;
    {
      const StateLock lock(state_.locks);
      Range* const range = AsRange(state_.ledger.Find(base));
      if (IsIdle(range, &next)) {
        if (!needs_device || range->place == Place::kDevice) {
          act(range);
          return CUDA_SUCCESS;
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
      base::YieldToOthers();  // another thread's call names it, or its work waits for the program
    }
  }
  return CUDA_ERROR_NOT_READY;
}

// `next`: what must be complete first, if that may be waited for.
bool OwnMemory::IsIdle(Range* range, Waits::Awaited* next) {
  if (range->place == Place::kLeaving) state_.residency.departures().Cancel(range);
  if (!state_.residency.uses().CloseFastPath(range)) return false;
  for (UseList* uses : {&range->uses, &range->ready_after}) {
    if (state_.timeline.AllDone(uses)) continue;
    *next = waits_.WithEvents(FirstUses(state_.timeline.OneToAwait(uses)));
    return false;
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

CUresult OwnMemory::SetRun(CUdeviceptr base, RunPiece kind) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  Range* range;
  RunPiece before;
  {
    const StateLock lock(state_.locks);
    range = AsRange(state_.ledger.Find(base));
    before = range->run_piece;
    if (before == kind) return CUDA_SUCCESS;
    kind == RunPiece::kNone ? runs_.Leave(range) : runs_.Join(range, kind);
  }
  if (kind == RunPiece::kNone || BringBack(range)) return CUDA_SUCCESS;
  const StateLock lock(state_.locks);
  before == RunPiece::kNone ? runs_.Leave(range) : runs_.Join(range, before);
  state_.counters.NoteRefusedUnmovable(range->requested_bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void OwnMemory::ReleaseRuns() {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const MakingLock making(state_.locks);
  {
    const StateLock lock(state_.locks);
    if (state_.counters.held_run_bytes == 0) return;
  }
  const bool have_ended = replays_.EndRecordsWhileMaking();
  parking_.EndMoving();
  const StateLock lock(state_.locks);
  if (have_ended) runs_.Release();
}

// With the run that it is in, which is held then.
bool OwnMemory::BringBack(Range* range) {
  std::vector<Range*> pieces;
  {
    const StateLock lock(state_.locks);
    pieces = runs_.PiecesWith(range);
    for (Range* piece : pieces) state_.residency.Pin(piece);
  }
  state_.budget.AwaitReturn([&]() SPILLWAY_REQUIRES(kStateLock) {
    return state_.counters.UnmovableBytesSoon() <= state_.budget.bytes();
  });
  bool is_there = replays_.EndRecordsWhileMaking();
  for (Range* piece : pieces)
    is_there = is_there && restores_.MakeResident(piece, Role::kReadsAndWrites);
  parking_.EndMoving();
  for (Range* piece : pieces) AwaitReady(piece);
  const StateLock lock(state_.locks);
  for (Range* piece : pieces) state_.residency.Unpin(piece);
  is_there = is_there && AllOnDevice(pieces);
  if (is_there) runs_.Hold(range);
  return is_there;
}

// Calls that name a neighbour wait for no restore of it.
void OwnMemory::AwaitReady(Range* range) {
  for (;;) {
    Waits::Awaited next;
    {
      const StateLock lock(state_.locks);
      if (state_.timeline.AllDone(&range->ready_after)) return;
      next = waits_.WithEvents(FirstUses(state_.timeline.OneToAwait(&range->ready_after)));
      if (next.empty()) return;
    }
    waits_.AwaitOneOf(next, StallCause::kDemand);
  }
}

CUresult OwnMemory::Pin(std::uint64_t owner, CUdeviceptr base, Unmovable why,
                        CUmemGenericAllocationHandle* handle) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  held_.Hold(owner, base, why);  // from now on it does not leave
  {
    const MakingLock making(state_.locks);
    Range* range;
    {
      const StateLock lock(state_.locks);
      range = AsRange(state_.ledger.Find(base));
    }
    const bool is_there = BringBack(range);
    const StateLock lock(state_.locks);
    if (is_there) *handle = range->chunks.front()->handle;
    if (is_there) return CUDA_SUCCESS;
    state_.counters.NoteRefusedUnmovable(range->requested_bytes);
  }
  held_.EndHold(owner);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUmemGenericAllocationHandle OwnMemory::Disown(CUdeviceptr base) {
  const StateLock lock(state_.locks);
  Range* const range = AsRange(state_.ledger.Find(base));
  EndInBooks(range);
  state_.counters.UnmovableFor(Unmovable::kOwnMapping).Add(range->size_bytes);
  return state_.residency.Disown(range);
}

void OwnMemory::EndInBooks(Range* range) {
  ForgetInBooks(range);
  if (range->unmovable != Unmovable::kNo)
    state_.counters.UnmovableFor(range->unmovable).bytes -= range->size_bytes;
  state_.contents.Freed(range->base, range->size_bytes);
}

void OwnMemory::ForgetInBooks(Range* range) {
  runs_.Leave(range);
  frees_.ReportFree(range);
  state_.executor.Freed(range->id);
  state_.ledger.RemoveRange(range);
}

}  // namespace spillway::interposer
