#include "tests/fuzz/differential/limits.h"

#include "tests/fuzz/differential/choose.h"
#include "tests/fuzz/differential/feature.h"

namespace spillway::fuzz {
namespace {

bool IsInSecondContext(const Shape& shape, int thread) { return shape.ContextOf(thread) != 0; }

}  // namespace

bool MayHold(const World& world, const Shape& shape, const Operation& alloc) {
  if (IsHostMemory(static_cast<AllocForm>(alloc.form))) return true;
  std::uint64_t small_bytes = alloc.bytes < kMiB ? alloc.bytes : 0;
  const int mappings = FeatureNamed("mappings");
  std::uint64_t mapped_bytes = alloc.feature == mappings ? alloc.bytes : 0;
  std::uint64_t second_bytes = RoundUp(alloc.bytes, kChunkBytes);
  for (const auto& [id, buffer] : world.Buffers()) {
    if (!buffer.live || buffer.InHostMemory()) continue;
    if (buffer.bytes < kMiB) small_bytes += buffer.bytes;
    if (buffer.feature == mappings) mapped_bytes += buffer.bytes;
    if (IsInSecondContext(shape, buffer.thread)) second_bytes += RoundUp(buffer.bytes, kChunkBytes);
  }
  if (alloc.bytes < kMiB && small_bytes > kSmallTotalBytes) return false;
  if (alloc.feature == mappings && mapped_bytes > kMappedBytes) return false;
  if (!IsInSecondContext(shape, alloc.thread)) return true;
  return alloc.bytes >= kMiB && second_bytes <= kSecondContextBytes;
}

}  // namespace spillway::fuzz
