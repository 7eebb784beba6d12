#include "interposer/execute/charges.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;

bool Charges::Charge(size_t bytes, Unmovable reason) {
  state_.budget.Await([&]()
                          SPILLWAY_REQUIRES(kStateLock) { return bytes <= state_.budget.bytes(); });
  if (reason == Unmovable::kOwnMapping) eviction_.AwaitReturnFor(bytes);
  {
    const StateLock lock(state_.locks);
    if (!FitsBesideRuns(bytes, reason)) return false;
  }
  const base::ScopedCount call(&state_.calls.for_memory);
  const RelaxedCapture relaxed(CapturesGoOn());
  const CurrentContext current(state_.context);
  replays_.RunDeferredFrees([&]() SPILLWAY_REQUIRES(kStateLock) {
    return !allocations_.HasRoomFor(bytes) || state_.host_grant.Lacks(bytes);
  });
  const MakingLock making(state_.locks);
  const bool charged =
      eviction_.MakeRoom(bytes, StallCause::kNoMemory, [&]() SPILLWAY_REQUIRES(kStateLock) {
        if (!state_.residency.Charge(bytes)) return false;
        ++state_.counters.passed_through;
        state_.counters.UnmovableFor(reason).Add(bytes);
        state_.budget.Want(bytes);
        state_.residency.TraceMemory();
        return true;
      });
  parking_.EndMoving();
  return charged;
}

// More of the program's own memory may become part of a run, which must fit the budget as a whole.
// So it is refused beside released runs as beside held ones.
bool Charges::FitsBesideRuns(size_t bytes, Unmovable reason) {
  const Counters& counters = state_.counters;
  const bool is_beside = reason == Unmovable::kOwnMapping && counters.released_bytes > 0;
  return bytes + (is_beside ? counters.UnmovableBytesSoon() : 0) <= state_.budget.bytes();
}

CUresult Charges::Refuse(size_t bytes) {
  const StateLock lock(state_.locks);
  ++state_.counters.refused_allocations;
  state_.counters.NoteRefusedUnmovable(bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void Charges::Discharge(size_t bytes, Unmovable reason) {
  const StateLock lock(state_.locks);
  DischargeLocked(bytes, reason);
}

void Charges::NotePassedThrough(std::uint64_t key, size_t bytes) {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  const StateLock lock(state_.locks);
  DischargeLocked(passed_through_.Add(key, bytes, context));
}

size_t Charges::TakePassedThrough(std::uint64_t key) {
  const StateLock lock(state_.locks);
  return passed_through_.Remove(key);
}

bool Charges::KeepCharged(std::uint64_t key, size_t bytes, size_t most_bytes) {
  const StateLock lock(state_.locks);
  bytes += passed_through_.Remove(key);
  const size_t kept_bytes = std::min(bytes, most_bytes);
  if (kept_bytes) passed_through_.Add(key, kept_bytes, state_.context);
  if (bytes > kept_bytes) DischargeLocked(bytes - kept_bytes);
  return kept_bytes > 0;
}

void Charges::ForgetPassedThrough(std::uint64_t key) {
  const StateLock lock(state_.locks);
  DischargeLocked(passed_through_.Remove(key));
}

void Charges::ContextDestroyed(CUcontext context) {
  const StateLock lock(state_.locks);
  state_.timeline.ContextDestroyed(context);
  DischargeLocked(passed_through_.RemoveAllIn(context));
}

void Charges::DischargeLocked(size_t bytes, Unmovable reason) {
  state_.counters.UnmovableFor(reason).bytes -= bytes;
  state_.residency.chunks().Discharge(bytes);
  state_.counters.wanted_bytes -= bytes;
  state_.residency.TraceMemory();
}

}  // namespace spillway::interposer
