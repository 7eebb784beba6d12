#include "simulator/runtime/unique_names.h"

#include <cctype>
#include <cstddef>
#include <string_view>

namespace spillway::simulator::runtime {
namespace {

bool StartsAt(std::string_view text, std::size_t position, std::string_view prefix) {
  return text.substr(position, prefix.size()) == prefix;
}

}  // namespace

std::string WithoutFileMarks(const std::string& mangled) {
  std::string out;
  std::size_t at = 0;
  while (at < mangled.size()) {
    std::size_t digits = at;
    std::size_t length = 0;
    while (digits < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[digits]))) {
      length = length * 10 + static_cast<std::size_t>(mangled[digits++] - '0');
    }
    const bool component = digits > at && digits + length <= mangled.size();
    if (component && StartsAt(mangled, digits, "_GLOBAL__N__")) {
      out += "12_GLOBAL__N_1";
      at = digits + length;
    } else if (component && StartsAt(mangled, digits, "_INTERNAL_")) {
      at = digits + length;
    } else if (component) {
      out.append(mangled, at, digits + length - at);
      at = digits + length;
    } else {
      out += mangled[at++];
    }
  }
  return out;
}

}  // namespace spillway::simulator::runtime
