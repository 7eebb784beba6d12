// Addresses that a launch's parameters hide in tensor maps, textures and surfaces.
//
// They join the operation's words (operation.h): if the memory is unmapped before, the kernel
// cannot access it.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/driver/memory/texture.h"

namespace spillway::simulator {

// `words` are the parameters in their memory layout, from an address aligned to 128 bytes.
void AddTensorMapAddresses(std::vector<std::uint64_t>& words);

void AddTextureAddresses(const TextureTable& textures, std::vector<std::uint64_t>& words);

}  // namespace spillway::simulator
