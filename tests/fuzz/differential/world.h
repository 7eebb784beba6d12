// What exists at a point of a random program, whose it is, and which bytes have been written.
//
// Used by the generator, and to drop from a shortened program what lost its footing; on one thread.
// Owns its tables.
//
// Invariants
//  1. An allowed operation names only living things of its own thread and reads only initialised
//     segments.
//  2. A use of a feature's object is allowed while all buffers that the object names live.
//  3. A segment becomes initialised when one dense write covers it whole, and stays so until an
//     operation uses it as scratch memory.
// It never orders anything: that is the orderer's.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/fuzz/differential/operation.h"

namespace spillway::fuzz {

struct Segment {
  std::uint64_t begin_bytes = 0;
  std::uint64_t end_bytes = 0;
  bool initialised = false;
};

struct Buffer {
  AllocForm form = AllocForm::kMemAlloc;
  std::uint64_t bytes = 0;
  int thread = 0;
  int feature = kNone;  // which made it, with AllocForm::kFeature
  bool live = false;
  std::vector<Segment> segments;

  bool InHostMemory() const { return IsHostMemory(form); }
  bool IsWholeInitialised() const;
};

struct Stream {
  int thread = 0;
  bool live = false;
  bool blocking = true;
};

// Made by a feature: a graph, a texture, an array.
struct Object {
  int feature = kNone;
  int thread = 0;
  bool live = false;
  Operation
      maker;  // its `names` are what uses of the object access, besides what they say themselves
};

// Calls of stream-ordered allocation.
constexpr bool IsStreamOrdered(AllocForm form) {
  return form == AllocForm::kAsync || form == AllocForm::kPool;
}

class World {
 public:
  bool Allows(const Operation& operation) const;
  void Apply(const Operation& operation);

  const std::map<int, Buffer>& Buffers() const { return buffers_; }
  const Buffer& At(int buffer) const { return buffers_.at(buffer); }
  // The streams that `thread` may use now, default ones first.
  std::vector<int> StreamsOf(int thread) const;
  bool IsBlocking(int stream) const;
  std::vector<int> EventsOf(int thread) const;
  std::vector<int> PoolsOf(int thread) const;
  // Those that a feature made and that may still be used.
  std::vector<int> ObjectsOf(int feature, int thread) const;
  const Object& ObjectAt(int object) const { return objects_.at(object); }
  std::uint64_t LiveDeviceBytes() const { return live_device_bytes_; }
  std::uint64_t PeakDeviceBytes() const { return peak_device_bytes_; }
  int LiveBuffers() const;

 private:
  bool CanUseStream(const Operation& operation) const;
  bool IsOwn(int buffer, int thread) const;
  bool CanRead(const View& view, int thread) const;
  bool CanWrite(const View& view, int thread) const;
  bool CanFree(const Operation& operation) const;
  bool CanUseObject(const Operation& operation) const;
  bool IsUsable(const Object& object) const;
  void ApplyToObject(const Operation& operation);
  void AddBuffer(const Operation& operation);
  void RemoveBuffer(const Operation& operation);
  void MarkWritten(const View& view);
  void MarkScratch(const View& view);

  std::map<int, Buffer> buffers_;
  std::map<int, Stream> streams_;
  std::map<int, int> events_;  // recorded ones: owning thread
  std::map<int, int> pools_;   // living ones: owning thread
  std::map<int, Object> objects_;
  std::uint64_t live_device_bytes_ = 0;
  std::uint64_t peak_device_bytes_ = 0;
};

}  // namespace spillway::fuzz
