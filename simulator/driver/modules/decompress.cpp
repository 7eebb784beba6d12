#include "simulator/driver/modules/decompress.h"

#include <lz4.h>
#include <zstd.h>

namespace spillway::simulator {

std::optional<base::Decompressed> Decompress(const base::FatEntry& entry) {
  return base::Decompress(entry, &LZ4_decompress_safe, &ZSTD_decompress, LZ4_MAX_INPUT_SIZE);
}

}  // namespace spillway::simulator
