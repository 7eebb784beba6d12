// The payload of a compressed entry of a fat binary.
//
// Toolkits before CUDA 12.4 compress by LZ4, later ones by zstd, or by LZ4 for `--compress-mode
// speed`.
#pragma once

#include <memory>
#include <optional>

#include "base/fat_binary.h"

namespace spillway::simulator {

struct Decompressed {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;

  base::ByteView view() const { return {bytes.get(), size}; }
};

// Nothing if the data is broken or says that it becomes longer than 2 GiB.
std::optional<Decompressed> Decompress(const base::FatEntry& entry);

}  // namespace spillway::simulator
