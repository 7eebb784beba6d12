// The payload of a compressed entry of a fat binary, by the host's libraries.
//
// PyTorch's modules are compressed. This library links no decompressor. It opens the host's
// liblz4.so.1 and libzstd.so.1 when the program begins to use the driver: later a thread may hold
// CUDA's locks that another needs within dlopen.
#pragma once

#include <optional>

#include "base/fat_decompress.h"

namespace spillway::interposer {

// Any thread, any number of times.
void OpenDecompressors();

// Nothing without the library, if the data is broken, or if it would exceed 1 GiB.
std::optional<base::Decompressed> Decompress(const base::FatEntry& entry);

}  // namespace spillway::interposer
