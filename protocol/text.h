// Text of a fixed size within messages, as a plain value.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace spillway::protocol {

// Printable ASCII, at most N - 1 characters, padded with zeros.
template <size_t N>
struct Text {
  char bytes[N] = {};

  Text() = default;
  // Cuts long texts. Unprintable characters become '?', so that no name can forge a log line.
  template <class Words>
  requires std::convertible_to<const Words&, std::string_view> Text(const Words& words) {
    const std::string_view text = words;
    for (size_t i = 0; i < text.size() && i + 1 < N; ++i)
      bytes[i] = text[i] >= 0x20 && text[i] <= 0x7e ? text[i] : '?';
  }
  std::string_view view() const { return {bytes, strnlen(bytes, N)}; }
  bool operator==(const Text&) const = default;
};

}  // namespace spillway::protocol
