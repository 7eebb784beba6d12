// The payload of a compressed entry of a fat binary, by the linked libraries.
#pragma once

#include <optional>

#include "base/fat_decompress.h"

namespace spillway::simulator {

// Nothing if the data is broken or becomes longer than 2 GiB.
std::optional<base::Decompressed> Decompress(const base::FatEntry& entry);

}  // namespace spillway::simulator
