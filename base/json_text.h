// Writes JSON text (RFC 8259) for the preload library, which links no JSON library.
//
// A byte outside any UTF-8 sequence becomes the character with its number, so every document stays
// readable.
#pragma once

#include <stdio.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace spillway::base {

// Calls put(std::string_view) with the pieces. Does not allocate.
template <class Put>
void EscapeJson(std::string_view text, Put&& put) {
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto* const here = reinterpret_cast<const unsigned char*>(text.data() + at);
    const std::size_t bytes = Utf8SequenceBytes(here, text.size() - at);
    const bool is_plain = bytes != 0 && *here >= 0x20 && *here != '"' && *here != '\\';
    if (!is_plain) {
      char escape[8];
      const bool is_short = *here == '"' || *here == '\\';
      const int size =
          is_short ? snprintf(escape, sizeof escape, "\\%c", *here)
                   : snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(*here));
      if (at > plain) put(text.substr(plain, at - plain));
      put(std::string_view(escape, static_cast<std::size_t>(size)));
      plain = at + 1;
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  if (plain < text.size()) put(text.substr(plain));
}

inline std::string JsonQuoted(std::string_view text) {
  std::string quoted = "\"";
  EscapeJson(text, [&quoted](std::string_view piece) { quoted += piece; });
  return quoted + '"';
}

}  // namespace spillway::base
