// Folds bytes into one number: any changed byte, and any changed order, changes it.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <cstring>

namespace spillway::fuzz {

inline constexpr std::uint64_t kDigestStart = 0xCBF29CE484222325ull;

// FNV-1a over 64-bit words instead of bytes, with the high bits brought back down.
constexpr std::uint64_t FoldWord(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x100000001B3ull;
  return digest ^ (digest >> 29);
}

inline std::uint64_t FoldBytes(std::uint64_t digest, const std::uint8_t* bytes,
                               std::uint64_t count) {
  std::uint64_t word = 0;
  for (; count >= sizeof(word); count -= sizeof(word), bytes += sizeof(word)) {
    std::memcpy(&word, bytes, sizeof(word));
    digest = FoldWord(digest, word);
  }
  word = count;
  std::memcpy(&word, bytes, count);
  return FoldWord(digest, word + (count << 56));
}

}  // namespace spillway::fuzz
