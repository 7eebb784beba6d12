#include "simulator/driver/memory/hidden_addresses.h"

#include <cstring>

#include "simulator/kernels/tensor_map_view.h"

namespace spillway::simulator {

void AddTensorMapAddresses(std::vector<std::uint64_t>& words) {
  constexpr std::size_t kWordsBetween =
      64 / sizeof(std::uint64_t);  // a map is aligned to at least 64 bytes
  const std::size_t count = words.size();
  for (std::size_t at = 0; at + sizeof(TensorMapView) / sizeof(std::uint64_t) <= count;
       at += kWordsBetween) {
    if (words[at] != kTensorMapMagic) continue;
    TensorMapView map;
    std::memcpy(&map, &words[at], sizeof map);
    words.push_back(map.Address());
  }
}

void AddTextureAddresses(const TextureTable& textures, std::vector<std::uint64_t>& words) {
  const std::size_t count = words.size();
  for (std::size_t i = 0; i < count; ++i) {
    const TextureObject* const texture = textures.OverLinearMemory(words[i]);
    if (texture == nullptr) continue;
    const auto first = reinterpret_cast<std::uint64_t>(texture->view.level[0].base);
    words.push_back(first);
    words.push_back(first + texture->size_bytes - 1);
  }
}

}  // namespace spillway::simulator
