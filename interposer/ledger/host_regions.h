// Memory that the processor reads and kernels reach where it lies: pinned, registered and managed
// memory of the program's.
//
// Filled by the hooks of such memory on any thread, before it can be named and until just before it
// goes; looked up by hooks and jobs. One for the process, never destroyed. Synchronises itself; its
// lock is a leaf. Owns plain facts.
//
// Note [Addresses in memory of the host's]
// The program may write an address of ours there at any time, without a call: no scan of a payload
// shows it. So what a launch names or can reach of such memory is looked through when it is
// launched, up to kWholeOnHostBytes in full. Of more a page in sixteen is looked at; and who
// launches knows that it was not all (Scan::is_whole).
//
// Invariants
//  1. What is in the table may be read: the hook takes a region out before the driver frees it, and
//  waits for who reads.
//  2. An address that was such memory once lies within the bounds for good.
//  3. Registered memory is the program's own, which may unmap it without a word: the kernel reads
//  it for us.
// Never: calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/transfer.h"
#include "interposer/ledger/word_scan.h"

namespace spillway::interposer {

inline constexpr std::size_t kWholeOnHostBytes = std::size_t{1} << 20;

struct HostRegion {
  enum class Reading : std::uint8_t { kDirect, kRegistered, kNone };
  CUdeviceptr base;  // as kernels name it
  std::size_t bytes;
  const std::byte* data;
  Reading reading;
  CUcontext context;  // with which it goes
};

class HostRegions {
 public:
  static HostRegions& Instance();

  // A cheap first look, without a lock: false for words that lead to no region.
  static bool MightHold(CUdeviceptr word) {
    return word - lowest_.load(std::memory_order_relaxed) < span_.load(std::memory_order_relaxed);
  }
  // The word lies in a region, or at its end: a kernel may be given the end of an array to count
  // down from.
  bool Holds(CUdeviceptr word) { return BaseOf(word) || BaseOf(word - 1); }
  // Where the region that the word leads to begins; 0: there is none.
  CUdeviceptr BaseOf(CUdeviceptr word);
  // What MightHold compares with.
  static WordBounds Bounds() {
    const CUdeviceptr lowest = lowest_.load(std::memory_order_relaxed);
    return {lowest, lowest + span_.load(std::memory_order_relaxed)};
  }

  static bool AnyEver() { return span_.load(std::memory_order_relaxed) != 0; }
  // Whether what copies bring from the program's memory holds an address of a region.
  bool AreBroughtBy(const Transfers& transfers);

  void Add(const HostRegion& region);
  // The region that the processor reads at `data`, which is about to go.
  std::optional<HostRegion> Take(const void* data);
  void ContextEnded(CUcontext context);

  // What lies in the region that the word leads to.
  struct Scan {
    bool is_whole = true;
    std::vector<HeldWord> held;         // within bounds
    std::vector<CUdeviceptr> leads_on;  // to other regions
  };
  Scan Read(CUdeviceptr word, WordBounds bounds);

 private:
  const HostRegion* Find(CUdeviceptr word) const SPILLWAY_REQUIRES(mutex_);
  void WidenBounds(const HostRegion& region) SPILLWAY_REQUIRES(mutex_);
  void ReadPage(const HostRegion& region, std::size_t offset, WordBounds bounds, Scan* out) const
      SPILLWAY_REQUIRES(mutex_);

  static inline constinit std::atomic<CUdeviceptr> lowest_{0};
  static inline constinit std::atomic<std::size_t> span_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  // Guarded by mutex_.
  std::map<CUdeviceptr, HostRegion> regions_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
