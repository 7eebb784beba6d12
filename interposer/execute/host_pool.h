// Pinned host memory for data that is away from the device: in slabs of the node's pool where an
// agent lends some, else our own.
//
// Called by residency with the state lock held. Owns the pinned buffers that are not lent to a
// range.
//
// Invariants
//  1. Bytes pinned in all, slabs as a whole, never rise beyond the limit; a limit that became less
//  is met as buffers come back. The
//     limit is what the agent grants, but at least what is on its way in and out; while buffers
//     must be mappable, at least what the job cannot do without.
//  2. A buffer given back may still be read or written by a copy under way: `busy` says which;
//  whoever takes it
//     orders its own copy after that.
//  3. Buffers of our own can be mapped at device addresses (host_memory.h) as long as the driver
//  has such memory; from its first
//     refusal on they are only pinned. Slabs cannot: while buffers must be mappable none is cut
//     from a slab.
//  4. Nothing waits for the agent: what it has not lent yet is pinned by ourselves; what it does
//  not grant lies in ordinary memory,
//     which no copy uses as long as there is pinned memory for the moment of the copy
//     (MakeOrdinary, MakePinned).
// Errors: Take answers false when the limit is reached or the driver cannot pin more.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/host_memory.h"
#include "interposer/execute/slab_regions.h"
#include "interposer/execute/timeline.h"

namespace spillway::interposer {

struct HostBuffer : driver::HostMemory {
  UseList busy;
};

class HostPool {
 public:
  HostPool(int device, size_t limit_bytes, bool mappable, Timeline* timeline)
      : device_(device),
        timeline_(timeline),
        slabs_(device),
        limits_{.granted_bytes = limit_bytes},
        mappable_(mappable) {}

  bool Take(size_t bytes, HostBuffer* out);
  // One that no copy keeps busy.
  bool TakeIdle(size_t bytes, HostBuffer* out);
  // The same, and it can be mapped at device addresses, whatever buffers must be as a rule.
  bool TakeMappable(size_t bytes, HostBuffer* out);
  void Give(HostBuffer* buffer);
  // The first copy that keeps a free buffer busy; null stream when there is none.
  Use NextToAwait();
  void ReleaseAll();

  struct Limits {
    size_t granted_bytes = 0;
    size_t needed_bytes = 0;    // for what is away and on its way
    size_t moving_bytes = 0;    // of it, for what is on its way in and out
    size_t expected_bytes = 0;  // likely to be needed later
    bool operator==(const Limits&) const = default;
  };
  void SetLimits(const Limits& limits);
  // A buffer that no copy keeps busy from pinned into ordinary memory, where others are in need of
  // its place, and back. False, and nothing has changed, where there is no memory.
  bool MakeOrdinary(HostBuffer* buffer);
  bool MakePinned(HostBuffer* buffer);
  // Whether buffers that are taken from now on must be such that they can be mapped at device
  // addresses, if there are any.
  void MustMap(bool must_map);

  // Whether new buffers can be mapped at device addresses.
  bool mappable() const { return mappable_; }
  size_t limit_bytes() const;
  size_t pinned_bytes() const { return own_bytes_ + slabs_.bytes(); }
  size_t pinned_peak_bytes() const { return pinned_peak_bytes_; }
  size_t slab_peak_bytes() const { return slab_peak_bytes_; }
  size_t ordinary_bytes() const { return ordinary_bytes_; }
  size_t ordinary_peak_bytes() const { return ordinary_peak_bytes_; }
  bool IsOverLimit() const { return pinned_bytes() > limit_bytes(); }

 private:
  bool Serves(const HostBuffer& buffer, size_t bytes) const {
    return buffer.bytes == bytes && buffer.is_pinned && (!NeedsMapping() || buffer.handle);
  }
  bool NeedsMapping() const { return (must_map_ || takes_mappable_) && mappable_; }
  template <class Accepts>
  bool TakeFree(Accepts accepts, HostBuffer* out);
  bool TakeFromSlab(size_t bytes, HostBuffer* out);
  bool Pin(size_t bytes, HostBuffer* out);
  bool New(size_t bytes, HostBuffer* out);
  void Unpin(const HostBuffer& buffer);
  template <class Goes>
  void UnpinIdle(Goes goes);
  void UnpinForRoom(size_t bytes);
  void LikeSlabs();
  void NotePeak();

  const int device_;
  Timeline* const timeline_;
  SlabRegions slabs_;
  Limits limits_;
  bool mappable_;
  bool must_map_ = false;
  bool takes_mappable_ = false;  // for the moment of a TakeMappable
  std::vector<HostBuffer> free_;
  size_t own_bytes_ = 0;
  size_t pinned_peak_bytes_ = 0;
  size_t slab_peak_bytes_ = 0;
  size_t ordinary_bytes_ = 0;
  size_t ordinary_peak_bytes_ = 0;
};

}  // namespace spillway::interposer
