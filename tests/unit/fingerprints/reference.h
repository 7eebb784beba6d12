// The fingerprint as defined, byte by byte. It shares no code with the kernel.
#pragma once

#include <cstdint>
#include <span>

#include "interposer/execute/residency/fingerprints.h"

namespace spillway::test {

inline std::uint64_t LittleEndian(std::span<const unsigned char> bytes, std::size_t first) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8 && first + i < bytes.size(); ++i)
    value |= std::uint64_t{bytes[first + i]} << (8 * i);
  return value;
}

// The upper and lower half of the product, by xor. Schoolbook, with 32-bit digits.
inline std::uint64_t FoldedProduct(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t second = a0 * b1 + (middle & 0xffffffff);
  const std::uint64_t high = a1 * b1 + (middle >> 32) + (second >> 32);
  return (a * b) ^ high;
}

inline interposer::Fingerprint ReferenceFingerprint(const interposer::Fingerprints::Key& key,
                                                    std::span<const unsigned char> bytes) {
  interposer::Fingerprint result{};
  for (int half = 0; half < 2; ++half) {
    const auto& lane = key.lanes[half];
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; 16 * i < bytes.size(); ++i) {
      const std::uint64_t low = LittleEndian(bytes, 16 * i);
      const std::uint64_t high = LittleEndian(bytes, 16 * i + 8);
      if (low == 0 && high == 0) continue;
      sum += FoldedProduct(low ^ (lane.low + i * lane.low_step),
                           high ^ (lane.high + i * lane.high_step));
    }
    std::uint64_t h = sum + lane.last + bytes.size() * (lane.low_step ^ 2 * lane.high_step);
    for (const std::uint64_t factor : {0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53}) {
      h ^= h >> 33;
      h *= factor;
    }
    result.words[half] = h ^ h >> 33;
  }
  return result;
}

}  // namespace spillway::test
