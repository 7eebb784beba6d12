// Recognises UTF-8 text.
#pragma once

#include <cstddef>

namespace spillway::base {

// The length of the well-formed sequence at `text`, or 0. (RFC 3629, section 4)
inline std::size_t Utf8SequenceBytes(const unsigned char* text, std::size_t left_bytes) {
  const unsigned char first = text[0];
  if (first < 0x80) return 1;
  const std::size_t bytes = first < 0xc2   ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > left_bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = text[1];
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || no_character ? 0 : bytes;
}

}  // namespace spillway::base
