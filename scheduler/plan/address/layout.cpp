#include "scheduler/plan/address/layout.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduler::address {
namespace {

constexpr int64_t kLargestSum = int64_t{1} << 62;

bool IsWellFormed(const Buffer& buffer) {
  if (buffer.lower >= buffer.upper || buffer.size_bytes <= 0 || buffer.alignment_bytes < 1)
    return false;
  if (!buffer.fixed_offset_bytes) return true;
  return *buffer.fixed_offset_bytes >= 0 &&
         *buffer.fixed_offset_bytes % buffer.alignment_bytes == 0;
}

}  // namespace

int64_t PeakLoadBytes(const std::vector<Buffer>& buffers) {
  // (time, change); frees sort before births at equal times.
  std::vector<std::pair<int64_t, int64_t>> changes;
  changes.reserve(2 * buffers.size());
  for (const Buffer& buffer : buffers) {
    changes.emplace_back(buffer.lower, buffer.size_bytes);
    changes.emplace_back(buffer.upper, -buffer.size_bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t load = 0;
  int64_t peak = 0;
  for (const auto& [when, change] : changes) {
    load += change;
    peak = std::max(peak, load);
  }
  return peak;
}

int64_t HeightOf(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets_bytes) {
  int64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i)
    height = std::max(height, offsets_bytes[i] + buffers[i].size_bytes);
  return height;
}

bool IsWellFormed(const Problem& problem) {
  int64_t sum = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (!IsWellFormed(buffer)) return false;
    const int64_t highest = std::max(buffer.size_bytes, buffer.fixed_offset_bytes.value_or(0));
    if (highest > kLargestSum - sum || buffer.alignment_bytes > kLargestSum - sum - highest)
      return false;
    sum += highest + buffer.alignment_bytes;
  }
  return problem.capacity_bytes >= 0;
}

}  // namespace spillway::scheduler::address
