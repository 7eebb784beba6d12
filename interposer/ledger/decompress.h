// The payload of a compressed entry of a fat binary, by the host's libraries.
//
// nvcc compresses by default: toolkits before CUDA 12.4 by LZ4, later ones by zstd, or by LZ4 for
// `--compress-mode speed`. This library links neither. It opens liblz4.so.1 and libzstd.so.1 where
// the host has them, when the program begins to use the driver: later a thread may hold CUDA's
// locks that another needs within dlopen.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/fat_binary.h"

namespace spillway::interposer {

// Any thread, any number of times.
void OpenDecompressors();

struct Decompressed {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;

  base::ByteView view() const { return {bytes.get(), size}; }
};

// Nothing without the library, if the data is broken, or if it says that it becomes longer than
// 1 GiB.
std::optional<Decompressed> Decompress(const base::FatEntry& entry);

}  // namespace spillway::interposer
