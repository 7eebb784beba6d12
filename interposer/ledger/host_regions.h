// Host memory that kernels access in place: the program's pinned, registered and managed memory.
//
// Hooks fill the table on any thread, from before the program can name the memory until just before
// its free. Synchronises itself; its lock is a leaf.
//
// Note [Addresses in memory of the host's]
// The program may write an address of ours there without a call, so each launch scans such memory
// that it names or can reach. Regions of up to kWholeOnHostBytes are always scanned in full. A
// larger region mostly holds images, weights or tokens, and is often named only by a word left in
// an unused parameter. It is scanned in full when it is first named, around a new kernel's launch,
// and at scan 2, 4, 8, ... In between, kNearBytes to both sides of the word and one page in sixteen
// are scanned. A region that has held an address is scanned in full from then on. One assumption
// remains: where a large region held no address, none appears in less than sixteen pages, far from
// the word that leads there.
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
inline constexpr std::size_t kNearBytes = kWholeOnHostBytes / 2;
// A kernel may be given an array's end to count down from, or a place before its beginning.
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

  // Without a lock: false for words in no region.
  static bool MightHold(CUdeviceptr word) {
    return word - lowest_.load(std::memory_order_relaxed) < span_.load(std::memory_order_relaxed);
  }
  bool Holds(CUdeviceptr word) { return !BasesNear(word).empty(); }
  // 0: none.
  CUdeviceptr BaseOf(CUdeviceptr word);
  // One's end is often another's begin.
  using Bases = base::InlineVector<CUdeviceptr, 4>;
  Bases BasesNear(CUdeviceptr word);
  static WordBounds Bounds() {
    const CUdeviceptr lowest = lowest_.load(std::memory_order_relaxed);
    return {lowest, lowest + span_.load(std::memory_order_relaxed)};
  }

  static bool AnyEver() { return span_.load(std::memory_order_relaxed) != 0; }
  // Whether copies bring an address of a region.
  bool AreBroughtBy(const Transfers& transfers);

  void Add(const HostRegion& region);
  // Removes and returns the region that the CPU reads at `data`, before it is freed.
  std::optional<HostRegion> Take(const void* data);
  void ContextEnded(CUcontext context);

  // Into the region, or beside it.
  struct Place {
    CUdeviceptr base;
    CUdeviceptr word;
    bool in_full = false;        // it is to be scanned in full
    bool is_sampled = false;     // the rest of the region was scanned for another word
    bool is_read_whole = false;  // a scan said so
  };
  struct Scan {
    bool is_readable = true;
    bool is_whole = false;
    std::vector<HeldWord> held;
    std::vector<Place> leads_on;  // to other regions
  };
  Scan Read(const Place& place, WordBounds bounds);

 private:
  struct Region : HostRegion {
    bool holds_addresses = false;  // did, once
    bool is_readable = true;       // every page was, so far
    WordBounds scanned_for = {};   // what the scans in full looked for
    std::uint64_t scans = 0;
    std::uint64_t whole_at_scan = 0;
  };
  // In bytes from the region's begin.
  struct Part {
    std::size_t begin, end;
  };

  const Region* Find(CUdeviceptr word) const SPILLWAY_REQUIRES(mutex_);
  Bases FindNear(CUdeviceptr word) const SPILLWAY_REQUIRES(mutex_);
  void WidenBounds(const HostRegion& region) SPILLWAY_REQUIRES(mutex_);
  static bool MustReadWhole(const Region& region, WordBounds bounds);
  static Part Near(const Region& region, CUdeviceptr word);
  void ReadWhole(WordBounds bounds, Region* region, Scan* out) SPILLWAY_REQUIRES(mutex_);
  void ReadSample(const Region& region, const Place& place, WordBounds bounds, Scan* out) const
      SPILLWAY_REQUIRES(mutex_);
  void ReadPart(const Region& region, const Part& part, WordBounds bounds, Scan* out) const
      SPILLWAY_REQUIRES(mutex_);
  void ReadPage(const Region& region, std::size_t offset, WordBounds bounds, Scan* out) const
      SPILLWAY_REQUIRES(mutex_);

  static inline constinit std::atomic<CUdeviceptr> lowest_{0};
  static inline constinit std::atomic<std::size_t> span_{0};
  base::Mutex mutex_{base::LockRank::kPools};
  std::map<CUdeviceptr, Region> regions_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
