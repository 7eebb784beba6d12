// A fast 64-bit checksum of bytes: XXH64 (xxhash.com, the specification of version 0.1.1).
//
// It finds damage, not forgery. Equal on all machines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spillway::base {
namespace checksum {

inline constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                               kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                               kPrime5 = 0x27D4EB2F165667C5;

template <class Word>
Word Load(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t Round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

inline std::uint64_t Merge(std::uint64_t sum, std::uint64_t lane) {
  return (sum ^ Round(0, lane)) * kPrime1 + kPrime4;
}

inline std::uint64_t OfTail(const std::byte* at, const std::byte* end, std::uint64_t sum) {
  for (; end - at >= 8; at += 8)
    sum = std::rotl(sum ^ Round(0, Load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    sum = std::rotl(sum ^ (Load<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at)
    sum = std::rotl(sum ^ (std::to_integer<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  return sum;
}

}  // namespace checksum

inline std::uint64_t Checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0) {
  using namespace checksum;
  const auto* at = static_cast<const std::byte*>(data);
  const std::byte* const end = at + bytes;
  std::uint64_t sum = seed + kPrime5;
  if (bytes >= 32) {
    std::uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; end - at >= 32; at += 32) {
      for (int i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Load<std::uint64_t>(at + 8 * i));
    }
    sum = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
          std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) sum = Merge(sum, lane);
  }
  sum = OfTail(at, end, sum + bytes);
  sum = (sum ^ (sum >> 33)) * kPrime2;
  sum = (sum ^ (sum >> 29)) * kPrime3;
  return sum ^ (sum >> 32);
}

}  // namespace spillway::base
