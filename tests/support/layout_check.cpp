#include "tests/support/layout_check.h"

namespace spillway::scheduler::address {
namespace {

std::optional<LayoutFault> FaultAlone(const Buffer& buffer, int64_t offset_bytes,
                                      int64_t capacity_bytes) {
  if (offset_bytes < 0 || offset_bytes > capacity_bytes - buffer.size_bytes)
    return LayoutFault::kOutOfBounds;
  if (offset_bytes % buffer.alignment_bytes != 0) return LayoutFault::kMisaligned;
  if (buffer.fixed_offset_bytes && *buffer.fixed_offset_bytes != offset_bytes)
    return LayoutFault::kMovedFixedBuffer;
  return std::nullopt;
}

bool ShareBytes(const Buffer& one, int64_t offset, const Buffer& other, int64_t other_offset) {
  const bool share_time = one.lower < other.upper && other.lower < one.upper;
  const bool share_space =
      offset < other_offset + other.size_bytes && other_offset < offset + one.size_bytes;
  return share_time && share_space;
}

}  // namespace

std::optional<LayoutOffence> CheckLayout(const Problem& problem, const Layout& layout) {
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (i >= layout.offsets_bytes.size()) return LayoutOffence{LayoutFault::kMissingOffset, i, i};
    const Buffer& buffer = problem.buffers[i];
    const auto fault = FaultAlone(buffer, layout.offsets_bytes[i], problem.capacity_bytes);
    if (fault) return LayoutOffence{*fault, i, i};
    for (size_t j = 0; j < i; ++j) {
      if (ShareBytes(problem.buffers[j], layout.offsets_bytes[j], buffer, layout.offsets_bytes[i]))
        return LayoutOffence{LayoutFault::kOverlap, j, i};
    }
  }
  return std::nullopt;
}

}  // namespace spillway::scheduler::address
