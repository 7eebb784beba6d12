#include "interposer/dnn/tensor_extent.h"

#include <algorithm>

namespace spillway::dnn {
namespace {

// Whether each dimension, in order of strides, begins where the previous one ends.
bool LeaveNoGap(std::span<const Dimension> dimensions) {
  Dimension sorted[kMostDimensions];
  Dimension* const last = std::copy(dimensions.begin(), dimensions.end(), sorted);
  std::sort(sorted, last,
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t next = 1;
  for (const Dimension* it = sorted; it != last; ++it) {
    if (it->size == 1) continue;
    if (it->stride != next) return false;
    next *= it->size;
  }
  return true;
}

}  // namespace

std::size_t ElementBytes(int type) {
  switch (type) {
    case kInt8:
    case kUint8:
    case kFp8E4m3:
    case kFp8E5m2:
      return 1;
    case kHalf:
    case kBfloat16:
      return 2;
    case kFloat:
    case kInt32:
    case kUint32:
      return 4;
    case kDouble:
    case kInt64:
      return 8;
    default:
      return 0;
  }
}

TensorExtent ExtentOf(int type, std::span<const Dimension> dimensions) {
  if (ElementBytes(type) == 0 || dimensions.empty() || dimensions.size() > kMostDimensions)
    return {};
  std::int64_t last = 0;
  for (const Dimension& each : dimensions) {
    if (each.size <= 0 || each.stride <= 0 || each.size > kMostElements / each.stride) return {};
    last += (each.size - 1) * each.stride;
    if (last >= kMostElements) return {};
  }
  return {static_cast<std::size_t>(last + 1) * ElementBytes(type), LeaveNoGap(dimensions)};
}

}  // namespace spillway::dnn
