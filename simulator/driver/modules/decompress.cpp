#include "simulator/driver/modules/decompress.h"

#include <lz4.h>
#include <zstd.h>

namespace spillway::simulator {
namespace {

constexpr std::size_t kMostBytes = LZ4_MAX_INPUT_SIZE;

bool Fill(const base::FatEntry& entry, Decompressed& out) {
  if ((entry.flags & base::FatEntry::kZstd) != 0) {
    const std::size_t made =
        ZSTD_decompress(out.bytes.get(), out.size, entry.payload.data(), entry.payload.size());
    return ZSTD_isError(made) == 0 && made == out.size;
  }
  return LZ4_decompress_safe(entry.payload.data(), out.bytes.get(),
                             static_cast<int>(entry.payload.size()),
                             static_cast<int>(out.size)) == static_cast<int>(out.size);
}

}  // namespace

std::optional<Decompressed> Decompress(const base::FatEntry& entry) {
  const std::size_t size = entry.original_bytes;
  if (size == 0 || size > kMostBytes || entry.payload.size() > kMostBytes) return std::nullopt;
  // Not cleared: memory that a hostile length asks for in vain is never touched.
  Decompressed out{std::make_unique_for_overwrite<char[]>(size), size};
  if (!Fill(entry, out)) return std::nullopt;
  return out;
}

}  // namespace spillway::simulator
