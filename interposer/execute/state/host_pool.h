// Pinned host memory for evicted data: slabs that the agent lends, else our own.
//
// Owns the buffers that no range has.
//
// Invariants
//  1. Pinned bytes, with slabs counted whole, never rise beyond the limit. A limit that shrank is
//     met as buffers come back. The limit is the agent's grant, but at least what is being evicted
//     and restored. While buffers must be mappable, it is at least what the job cannot do without.
//  2. A copy may still use a buffer that was given back: its next owner orders its own copy behind
//     `busy`.
//  3. Own buffers can be mapped at device addresses (host_memory.h) until the driver first refuses
//     such memory. From then on they are only pinned. Slabs cannot be mapped: while buffers must be
//     mappable, none is cut from a slab.
//  4. Nothing waits for the agent. Memory that it has not lent yet is pinned by us. Memory that it
//     does not grant lies in ordinary memory. Copies avoid ordinary memory while there is pinned
//     memory for the moment of the copy (MakeOrdinary, MakePinned).
// Errors: Take answers false when the limit is reached or the driver cannot pin more.
#pragma once

#include <cstddef>
#include <vector>

#include "interposer/driver/host_memory.h"
#include "interposer/execute/state/slab_regions.h"
#include "interposer/execute/state/timeline.h"

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
  // A buffer that no copy keeps busy.
  bool TakeIdle(size_t bytes, HostBuffer* out);
  // The same, mappable at device addresses even where MustMap is off.
  bool TakeMappable(size_t bytes, HostBuffer* out);
  // In ordinary memory, whatever the limit.
  bool TakeOrdinary(size_t bytes, HostBuffer* out);
  void Give(HostBuffer* buffer);
  // Gives the memory back to the agent or the system, where Give may keep it.
  void Release(HostBuffer* buffer);
  // The same for free buffers, while no more of them are expected to be needed.
  void ReleaseFree();
  bool IsIdle(HostBuffer* buffer) { return timeline_->AllDone(&buffer->busy); }
  // The first copy that keeps a free buffer busy; null stream when there is none.
  Use NextToAwait();
  void ReleaseAll();

  struct Limits {
    size_t granted_bytes = 0;
    size_t needed_bytes = 0;  // for evicted ranges and those on their way
    size_t moving_bytes = 0;  // of it, on their way in and out
    size_t expected_bytes = 0;
    bool operator==(const Limits&) const = default;
  };
  void SetLimits(const Limits& limits);
  // Slabs that came for what is expected, to be mapped (SlabRegions::Map) before it must be quick.
  SlabRegions::Coming TakeAhead();
  void AddAhead(const SlabRegions::Coming& coming);
  // Moves an idle buffer from pinned to ordinary memory, where others need its place, and back.
  // False, with nothing changed, where there is no memory.
  bool MakeOrdinary(HostBuffer* buffer);
  bool MakePinned(HostBuffer* buffer);
  void MustMap(bool must_map);
  // So much of what is expected to be evicted lies in the job's file.
  void NoteSpilled(size_t bytes) { spilled_bytes_ = bytes; }

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
  void SetSlabGoal();
  void NotePeak();

  const int device_;
  Timeline* const timeline_;
  SlabRegions slabs_;
  Limits limits_;
  bool mappable_;
  bool must_map_ = false;
  bool takes_mappable_ = false;
  std::vector<HostBuffer> free_;
  size_t own_bytes_ = 0;
  size_t pinned_peak_bytes_ = 0;
  size_t slab_peak_bytes_ = 0;
  size_t ordinary_bytes_ = 0;
  size_t ordinary_peak_bytes_ = 0;
  size_t spilled_bytes_ = 0;
};

}  // namespace spillway::interposer
