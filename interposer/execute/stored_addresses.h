// Addresses of the job's memory that copies, and the program on the host, store in memory.
//
// MemoryScan finds the kernels' own.
//
// Invariants
//  1. A word that a copy brings is known when the copy's call has ended, or the job is unsafe.
// Never: reads device memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"
#include "interposer/ledger/libraries.h"
#include "interposer/ledger/transfer.h"
#include "interposer/ledger/word_scan.h"

namespace spillway::interposer {

class StoredAddresses {
 public:
  struct Global {
    CUdeviceptr base;
    size_t bytes;
    const void* module;
    bool operator==(const Global&) const = default;
  };

  explicit StoredAddresses(JobState& state) : state_(state) {}

  // After End, when the driver has accepted the call.
  void Wrote(const Transfers& transfers, const TouchSet& set) SPILLWAY_EXCLUDES(kStateLock);

  void RegisterGlobal(CUdeviceptr base, size_t bytes, const void* module)
      SPILLWAY_EXCLUDES(kStateLock);
  void ForgetGlobals(const void* module) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Whether the variables of all libraries are found. Any thread.
  bool KnowsAllVariables() const {
    return !Libraries::Instance().AnyBehind(libraries_found_.load(std::memory_order_relaxed));
  }
  // Any of the known variables and constants is written.
  bool WritesVariables(const Transfers& transfers) const SPILLWAY_EXCLUDES(kStateLock);
  void FindVariables() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  void ForgetHost(CUdeviceptr base, size_t bytes) SPILLWAY_EXCLUDES(kStateLock);

  // Scans the host memory that a launch names. What it reaches from there is read as it is
  // followed.
  void ReadHost(TouchSet* set) const {
    set->held_on_host.clear();
    set->host_places.clear();
    set->host_is_unsure = false;
    if (!set->host_words) return;
    for (const CUdeviceptr word : *set->host_words) ReadHostAt(word, set);
  }
  // Scans what a word leads to.
  void ReadHostAt(CUdeviceptr word, TouchSet* set) const;
  void ReadHostPlace(HostRegions::Place place, TouchSet* set) const;
  bool FoundNewOnHost(const TouchSet& set) const;
  // Whether the word leads to host memory, and from there to ours.
  bool LeadsToHeldWords(CUdeviceptr word) const;

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
  std::atomic<std::uint64_t> libraries_found_{0};
};

}  // namespace spillway::interposer
