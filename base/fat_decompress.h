// The payload of a compressed entry of a fat binary.
//
// Toolkits before CUDA 12.4 compress by LZ4, later ones by zstd, or by LZ4 for `--compress-mode
// speed`. The caller links or opens the libraries.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

#include "base/fat_binary.h"

namespace spillway::base {

// LZ4_decompress_safe and ZSTD_decompress (lz4.h, zstd.h). Both answer how many bytes they made, or
// an error. Null: there is none.
using DecompressLz4 = int (*)(const char* from, char* to, int from_bytes, int to_bytes);
using DecompressZstd = std::size_t (*)(void* to, std::size_t to_bytes, const void* from,
                                       std::size_t from_bytes);

struct Decompressed {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;

  ByteView view() const { return {bytes.get(), size}; }
};

// Nothing without the function, if the data is broken, or if it would exceed `most_bytes` (at most
// 2 GiB less 32 MiB: LZ4_MAX_INPUT_SIZE).
inline std::optional<Decompressed> Decompress(const FatEntry& entry, DecompressLz4 lz4,
                                              DecompressZstd zstd, std::size_t most_bytes) {
  const std::size_t size = entry.original_bytes;
  const ByteView from = entry.payload;
  if (size == 0 || size > most_bytes || from.size() > most_bytes) return std::nullopt;
  // Not cleared: a hostile length then touches no memory.
  Decompressed out{std::unique_ptr<char[]>(new (std::nothrow) char[size]), size};
  if (!out.bytes) return std::nullopt;
  const bool is_zstd = (entry.flags & FatEntry::kZstd) != 0;
  const bool is_made =
      is_zstd ? zstd != nullptr && zstd(out.bytes.get(), size, from.data(), from.size()) == size
              : lz4 != nullptr && lz4(from.data(), out.bytes.get(), static_cast<int>(from.size()),
                                      static_cast<int>(size)) == static_cast<int>(size);
  if (!is_made) return std::nullopt;
  return out;
}

}  // namespace spillway::base
