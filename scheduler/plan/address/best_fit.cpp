#include "scheduler/plan/address/best_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace spillway::scheduler::address {
namespace {

using Extent = std::pair<int64_t, int64_t>;  // bytes [first, second)

// Holds any size times any lifetime.
__extension__ using Area = unsigned __int128;

int64_t LifetimeOf(const Buffer& buffer) { return buffer.upper - buffer.lower; }

Area AreaOf(const Buffer& buffer) {
  return static_cast<Area>(buffer.size_bytes) * static_cast<Area>(LifetimeOf(buffer));
}

bool GoesFirst(const Buffer& one, const Buffer& other, PlacementOrder order) {
  const bool one_fixed = one.fixed_offset_bytes.has_value();
  const bool other_fixed = other.fixed_offset_bytes.has_value();
  if (one_fixed != other_fixed) return one_fixed;
  switch (order) {
    case PlacementOrder::kBySize:
      if (one.size_bytes != other.size_bytes) return one.size_bytes > other.size_bytes;
      return LifetimeOf(one) > LifetimeOf(other);
    case PlacementOrder::kByLifetime:
      if (LifetimeOf(one) != LifetimeOf(other)) return LifetimeOf(one) > LifetimeOf(other);
      return one.size_bytes > other.size_bytes;
    case PlacementOrder::kByArea:
      return AreaOf(one) > AreaOf(other);
    case PlacementOrder::kByStart:
      if (one.lower != other.lower) return one.lower < other.lower;
      return one.size_bytes > other.size_bytes;
  }
  return false;
}

std::vector<size_t> Sequence(const std::vector<Buffer>& buffers, PlacementOrder order) {
  std::vector<size_t> sequence(buffers.size());
  std::iota(sequence.begin(), sequence.end(), size_t{0});
  std::stable_sort(sequence.begin(), sequence.end(),
                   [&](size_t a, size_t b) { return GoesFirst(buffers[a], buffers[b], order); });
  return sequence;
}

int64_t AlignUp(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// `taken` is sorted by begin; above the last extent there is always space.
int64_t ChooseHole(const std::vector<Extent>& taken, const Buffer& buffer, HoleChoice choice) {
  int64_t top = 0;
  int64_t best = -1;
  int64_t best_size = 0;
  for (const auto& [begin, end] : taken) {
    const int64_t offset = AlignUp(top, buffer.alignment_bytes);
    if (begin - offset >= buffer.size_bytes && (best < 0 || begin - top < best_size)) {
      best = offset;
      best_size = begin - top;
      if (choice == HoleChoice::kLowest) return best;
    }
    top = std::max(top, end);
  }
  return best >= 0 ? best : AlignUp(top, buffer.alignment_bytes);
}

}  // namespace

Layout PlaceInOrder(const Problem& problem, PlacementOrder order, HoleChoice choice) {
  const std::vector<Buffer>& buffers = problem.buffers;
  Layout layout;
  layout.offsets_bytes.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // by offset
  std::vector<Extent> taken;
  for (const size_t next : Sequence(buffers, order)) {
    const Buffer& buffer = buffers[next];
    taken.clear();
    for (const size_t other : placed) {
      if (!OverlapInTime(buffer, buffers[other])) continue;
      const int64_t begin = layout.offsets_bytes[other];
      taken.emplace_back(begin, begin + buffers[other].size_bytes);
    }
    const int64_t offset =
        buffer.fixed_offset_bytes ? *buffer.fixed_offset_bytes : ChooseHole(taken, buffer, choice);
    layout.offsets_bytes[next] = offset;
    const auto above = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](int64_t at, size_t other) { return at < layout.offsets_bytes[other]; });
    placed.insert(above, next);
  }
  layout.height_bytes = HeightOf(buffers, layout.offsets_bytes);
  return layout;
}

Layout PlaceLikeSmartpool(const Problem& problem) {
  return PlaceInOrder(problem, PlacementOrder::kBySize, HoleChoice::kTightest);
}

}  // namespace spillway::scheduler::address
