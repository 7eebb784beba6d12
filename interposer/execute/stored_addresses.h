// Addresses of the job's memory that lie in memory: what copies have put there, and what the
// program keeps on the host.
//
// Called by hooks and by the classes behind JobMemory on any thread. Owns the list of device
// variables; what is found is in the job's Contents (ledger/contents.h). What kernels put into
// memory is found by MemoryScan.
//
// Invariants
//  1. A word that a copy brings is known from the end of the copy's call on, or the job counts as
//  unsafe.
// Never: reads device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"
#include "interposer/ledger/transfer.h"
#include "interposer/ledger/word_scan.h"

namespace spillway::interposer {

class StoredAddresses {
 public:
  // A device variable of the program.
  struct Global {
    CUdeviceptr base;
    size_t bytes;
    const void* module;
    bool operator==(const Global&) const = default;
  };

  explicit StoredAddresses(JobState& state) : state_(state) {}

  // After End, when the driver accepted the call: what it puts into memory.
  void Wrote(const Transfers& transfers, const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  // A device variable of the program, to be looked through with the rest.
  void RegisterGlobal(CUdeviceptr base, size_t bytes, const void* module)
      SPILLWAY_EXCLUDES(kStateLock);
  // This module or library is about to be unloaded.
  void ForgetGlobals(const void* module) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Where the variables of libraries lie in this context.
  void FindVariables() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // Memory of the host's is about to go: nothing lies there any more.
  void ForgetHost(CUdeviceptr base, size_t bytes) SPILLWAY_EXCLUDES(kStateLock);

  // Memory of the host's that a launch names, and what a word leads to, is looked through.
  void ReadHost(TouchSet* set) const;
  void ReadHostAt(CUdeviceptr word, TouchSet* set) const;
  // A new kernel has run: it has written what was not there before.
  bool FoundNewOnHost(const TouchSet& set) const;
  // Whoever follows the word comes to memory of the host's, and from there to ours.
  bool LeadsToHeldWords(CUdeviceptr word) const;

  // Where addresses at this place are noted.
  Contents& ContentsAt(CUdeviceptr address) SPILLWAY_REQUIRES(kStateLock);
  const std::vector<Global>& globals() const SPILLWAY_REQUIRES(kStateLock) { return globals_; }

 private:
  void WroteRow(const Transfer& transfer, CUdeviceptr to, CUdeviceptr from, Overwrite by)
      SPILLWAY_EXCLUDES(kStateLock);
  void PutAll(CUdeviceptr to, size_t bytes, const std::vector<HeldWord>& found)
      SPILLWAY_REQUIRES(kStateLock);
  bool IsInGlobal(CUdeviceptr address) const SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  std::vector<Global> globals_ SPILLWAY_GUARDED_BY(kStateLock);
  std::uint64_t libraries_found_ SPILLWAY_GUARDED_BY(kMakingLock) =
      0;  // the last one whose variables are known
};

}  // namespace spillway::interposer
