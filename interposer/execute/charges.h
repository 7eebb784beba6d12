// Device memory that the driver serves but that counts against the budget.
//
// A charge makes room before the driver's allocation. The allocation is noted under its address or
// handle until it is freed or its context ends.
//
// Invariants
//  1. Charged memory and the memory that the job holds never exceed the budget together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interposer/execute/allocations.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/replays.h"
#include "interposer/ledger/passed_through.h"

namespace spillway::interposer {

class Charges {
 public:
  Charges(JobState& state, Parking& parking, Eviction& eviction, Replays& replays,
          Allocations& allocations)
      : state_(state),
        parking_(parking),
        eviction_(eviction),
        replays_(replays),
        allocations_(allocations) {}

  bool Charge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);
  // The program's allocation, which could not be charged, is answered CUDA_ERROR_OUT_OF_MEMORY.
  CUresult Refuse(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  void Discharge(size_t bytes, Unmovable reason = Unmovable::kDriverServed);

  void NotePassedThrough(std::uint64_t key, size_t bytes);  // key: the address or handle
  // Its bytes stay charged; 0 for an unknown key.
  size_t TakePassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(kStateLock);
  // Of `bytes`, which are charged without a key, and of the key's, keeps at most `most_bytes` under
  // the key and discharges the others.
  bool KeepCharged(std::uint64_t key, size_t bytes, size_t most_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  void ForgetPassedThrough(std::uint64_t key) SPILLWAY_EXCLUDES(kStateLock);
  // A context other than the job's.
  void ContextDestroyed(CUcontext context) SPILLWAY_EXCLUDES(kStateLock);

 private:
  bool FitsBesideRuns(size_t bytes, Unmovable reason) SPILLWAY_REQUIRES(kStateLock);
  void DischargeLocked(size_t bytes, Unmovable reason = Unmovable::kDriverServed)
      SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Parking& parking_;
  Eviction& eviction_;
  Replays& replays_;
  Allocations& allocations_;
  PassedThrough passed_through_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
