// Offline dynamic storage allocation: buffers with known lifetimes and sizes get one offset each.
//
// A valid layout (tests/support/layout_check.h compares every pair)
//   1. Every buffer lies within [0, capacity_bytes).
//   2. Two buffers whose lifetimes overlap do not overlap in space.
//   3. An offset is a multiple of its buffer's alignment, and equals the fixed offset, if any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::scheduler::address {

// Alive in [lower, upper).
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

struct Layout {
  std::vector<int64_t> offsets_bytes;
  int64_t height_bytes = 0;
};

inline bool OverlapInTime(const Buffer& one, const Buffer& other) {
  return one.lower < other.upper && other.lower < one.upper;
}

// A lower bound on every layout's height.
int64_t PeakLoadBytes(const std::vector<Buffer>& buffers);

int64_t HeightOf(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets_bytes);

// Lifetimes, sizes and alignments are positive, fixed offsets aligned, and sums within 62 bits.
bool IsWellFormed(const Problem& problem);

}  // namespace spillway::scheduler::address
