// Random choices among a program's buffers, streams and parts of buffers at a point.
//
// Used by the generator on one thread; refers to its world and its dice and owns neither.
//
// Invariants
//  1. What is picked to be read has been written; what is picked to be written is a whole segment
//  or was written before.
//  2. Every answer may be "nothing" (kNone, nullopt or false): then the generator does something
//  else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {

inline constexpr std::uint64_t kKiB = 1ull << 10;
inline constexpr std::uint64_t kMiB = 1ull << 20;
inline constexpr std::uint64_t kChunkBytes = 2 * kMiB;
inline constexpr std::uint64_t kLargestWindowBytes = 48 * kKiB;
inline constexpr std::uint64_t kLargestDenseBytes =
    4 * kMiB;  // of a copy or fill that touches every byte

constexpr std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

class Chooser {
 public:
  Chooser(const World& world, Random& dice) : world_(world), dice_(dice) {}

  void SetThread(int thread) { thread_ = thread; }

  int PickStream();
  template <typename Wanted>
  int PickBuffer(Wanted wanted) {
    std::vector<int> candidates;
    for (const auto& [id, buffer] : world_.Buffers()) {
      if (buffer.live && buffer.thread == thread_ && wanted(buffer)) candidates.push_back(id);
    }
    return PickOf(candidates);
  }
  // Any buffer for a pointer that a kernel ignores; it must do no harm, even freed.
  int PickDecoy();

  // Where the segments of a new buffer begin: windows at the beginning, at the end, across a
  // chunk's edge and anywhere; what lies between is a segment too.
  std::vector<std::uint64_t> Cuts(std::uint64_t bytes);

  // A written part of a buffer.
  std::optional<View> PickReadable(int buffer, std::uint64_t limit_bytes);
  // A window not written yet as a whole, else part of one that was.
  std::optional<View> PickWritable(int buffer, std::uint64_t limit_bytes);
  // Mostly a window; of a buffer written all over sometimes words spread over it.
  std::optional<View> PickKernelInput(int buffer);
  std::optional<View> PickKernelOutput(int buffer);

  // Complete a copy from `source` to `target` or a fill of `buffer`.
  bool PlaceCopy(Operation& copy, int source, int target);
  bool PlaceFill(Operation& fill, int buffer);

 private:
  int PickOf(const std::vector<int>& candidates) {
    return candidates.empty() ? kNone : candidates[dice_.Below(candidates.size())];
  }
  View Within(int buffer, const Segment& segment, std::uint64_t limit_bytes);
  View Spread(int buffer) const;
  bool PlaceLine(Operation& copy, int source, int target);
  bool PlaceWhole(Operation& copy, int source, int target);
  bool PlaceBoxes(Operation& copy, int source, int target);
  bool Place(Operation& copy, const View& in, const View& out);
  View Boxed(const View& room, const Box& box);
  FillForm PickFillForm(Operation& fill);
  bool IsWritten(const View& view) const;

  const World& world_;
  Random& dice_;
  int thread_ = 0;
};

}  // namespace spillway::fuzz
