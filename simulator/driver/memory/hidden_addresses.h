// The memory that a launch's parameters name without showing an address: through tensor maps,
// textures and surfaces.
//
// Called by launches under the engine's mutex. What is found joins the operation's words
// (operation.h): memory that goes away before the kernel ran is then withheld from it.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/driver/memory/texture.h"

namespace spillway::simulator {

// `words` are the parameters as they lie in memory, from an address aligned to 128 bytes.
void AddTensorMapAddresses(std::vector<std::uint64_t>& words);

void AddTextureAddresses(const TextureTable& textures, std::vector<std::uint64_t>& words);

}  // namespace spillway::simulator
