// Philox4x32-10: random words from a counter and a key (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011).
//
// A word is known by its place alone, so results do not depend on how a call is divided.
#pragma once

#include <array>
#include <cstdint>

namespace spillway::simulator::rand {

using PhiloxBlock = std::array<std::uint32_t, 4>;

inline PhiloxBlock PhiloxRound(const PhiloxBlock& block, std::uint32_t low_key,
                               std::uint32_t high_key) {
  const std::uint64_t first = std::uint64_t{0xD2511F53} * block[0];
  const std::uint64_t second = std::uint64_t{0xCD9E8D57} * block[2];
  return {static_cast<std::uint32_t>(second >> 32) ^ block[1] ^ low_key,
          static_cast<std::uint32_t>(second),
          static_cast<std::uint32_t>(first >> 32) ^ block[3] ^ high_key,
          static_cast<std::uint32_t>(first)};
}

// `stream` separates uses of one key.
inline PhiloxBlock Philox(std::uint64_t key, std::uint64_t counter, std::uint64_t stream) {
  constexpr int kRounds = 10;
  PhiloxBlock block = {
      static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
      static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    block = PhiloxRound(block, low, high);
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return block;
}

}  // namespace spillway::simulator::rand
