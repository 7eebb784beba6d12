// Host memory that kernels access in place: the program's pinned, registered and managed memory.
//
// The hooks of such memory fill it on any thread, from before the program can name it until just
// before its free. Hooks and jobs look addresses up. One for the process, never destroyed.
// Synchronises itself; its lock is a leaf. Owns plain facts.
//
// Note [Addresses in memory of the host's]
// The program may write an address of ours there at any time, without a call, so no payload scan
// shows it. Therefore each launch scans such memory that it names or can reach. Up to
// kWholeOnHostBytes are scanned in full; of more memory, one page in sixteen. Scan::is_whole tells
// the launch whether the scan was complete.
// Invariants
//  1. Memory in the table may be read: a region is removed, and readers awaited, before its free.
//  2. The bounds include every address that ever was in a region or beside one.
//  3. The program may unmap registered memory unseen, so the kernel reads it for us.
// Never: calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/inline_vector.h"
#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/transfer.h"
#include "interposer/ledger/word_scan.h"

namespace spillway::interposer {

inline constexpr std::size_t kWholeOnHostBytes = std::size_t{1} << 20;
// A kernel may be given an address beside memory: the end of an array to count down from, a place
// before its beginning.
inline constexpr std::size_t kBesideOnHostBytes = 4096;

struct HostRegion {
  enum class Reading : std::uint8_t { kDirect, kRegistered, kNone };
  CUdeviceptr base;  // address for kernels
  std::size_t bytes;
  const std::byte* data;
  Reading reading;
  CUcontext context;  // the region ends with it
};

class HostRegions {
 public:
  static HostRegions& Instance();

  // Fast check without a lock: false for words in no region.
  static bool MightHold(CUdeviceptr word) {
    return word - lowest_.load(std::memory_order_relaxed) < span_.load(std::memory_order_relaxed);
  }
  // The word lies in a region, or beside one.
  bool Holds(CUdeviceptr word) { return !BasesNear(word).empty(); }
  // The begin of the region that holds the word; 0: none.
  CUdeviceptr BaseOf(CUdeviceptr word);
  // The begins of the regions that hold the word or lie beside it. One's end is often another's
  // begin.
  using Bases = base::InlineVector<CUdeviceptr, 4>;
  Bases BasesNear(CUdeviceptr word);
  static WordBounds Bounds() {
    const CUdeviceptr lowest = lowest_.load(std::memory_order_relaxed);
    return {lowest, lowest + span_.load(std::memory_order_relaxed)};
  }

  static bool AnyEver() { return span_.load(std::memory_order_relaxed) != 0; }
  // Whether copies from the program's memory bring an address of a region.
  bool AreBroughtBy(const Transfers& transfers);

  void Add(const HostRegion& region);
  // Removes and returns the region that the CPU reads at `data`, before it is freed.
  std::optional<HostRegion> Take(const void* data);
  void ContextEnded(CUcontext context);

  struct Scan {
    bool is_whole = true;
    std::vector<HeldWord> held;         // within bounds
    std::vector<CUdeviceptr> leads_on;  // words that lead to other regions
  };
  Scan Read(CUdeviceptr word, WordBounds bounds);

 private:
  const HostRegion* Find(CUdeviceptr word) const SPILLWAY_REQUIRES(mutex_);
  Bases FindNear(CUdeviceptr word) const SPILLWAY_REQUIRES(mutex_);
  void WidenBounds(const HostRegion& region) SPILLWAY_REQUIRES(mutex_);
  void ReadPage(const HostRegion& region, std::size_t offset, WordBounds bounds, Scan* out) const
      SPILLWAY_REQUIRES(mutex_);

  static inline constinit std::atomic<CUdeviceptr> lowest_{0};
  static inline constinit std::atomic<std::size_t> span_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  std::map<CUdeviceptr, HostRegion> regions_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
