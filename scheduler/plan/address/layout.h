// Address planning's whole domain: buffers that live for a while, and where each of them lies.
//
// Offline dynamic storage allocation: every buffer's lifetime and size are known beforehand, and
// each gets one offset for its life. Called by the address planners and whoever checks or prints
// their answers, on any thread; plain values.
//
// Invariants of a valid layout, which CheckLayout() verifies one by one:
//   1. Every buffer lies within [0, capacity_bytes).
//   2. Two buffers whose lifetimes overlap do not overlap in space.
//   3. An offset is a multiple of its buffer's alignment, and equals the fixed offset where there
//   is one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::scheduler::address {

// Alive in [lower, upper): two buffers of which one ends where the other begins may share their
// bytes.
struct Buffer {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size_bytes = 0;
  int64_t alignment_bytes = 1;
  std::optional<int64_t> fixed_offset_bytes = std::nullopt;

  bool operator==(const Buffer&) const = default;
};

struct Problem {
  std::vector<Buffer> buffers;
  int64_t capacity_bytes = 0;
};

// One offset per buffer, in the problem's order.
struct Layout {
  std::vector<int64_t> offsets_bytes;
  int64_t height_bytes = 0;  // the end of the highest buffer
};

inline bool OverlapInTime(const Buffer& one, const Buffer& other) {
  return one.lower < other.upper && other.lower < one.upper;
}

// The most bytes alive at one moment: no layout can be lower.
int64_t PeakLoadBytes(const std::vector<Buffer>& buffers);

int64_t HeightOf(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets_bytes);

// True when sizes, lifetimes, alignments and fixed offsets are what the planners can work with:
// lifetimes and sizes positive, alignments at least one, fixed offsets aligned, and sums within 62
// bits.
bool IsWellFormed(const Problem& problem);

}  // namespace spillway::scheduler::address
