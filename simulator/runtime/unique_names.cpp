#include "simulator/runtime/unique_names.h"

#include <cctype>
#include <cstddef>
#include <string_view>

namespace spillway::simulator::runtime {
namespace {

bool StartsAt(std::string_view text, std::size_t position, std::string_view prefix) {
  return text.substr(position, prefix.size()) == prefix;
}

constexpr std::string_view kStaticPrefix = "__nv_static_";

std::size_t Number(std::string_view text, std::size_t& position) {
  std::size_t number = 0;
  while (position < text.size() && std::isdigit(static_cast<unsigned char>(text[position]))) {
    number = number * 10 + static_cast<std::size_t>(text[position++] - '0');
  }
  return number;
}

// The start of the mangled name behind "__nv_static_<n>_<n characters>_"; 0 without that prefix.
std::size_t BehindStaticPrefix(std::string_view name) {
  if (!StartsAt(name, 0, kStaticPrefix)) return 0;
  std::size_t at = kStaticPrefix.size();
  const std::size_t length = Number(name, at);
  return at + length + 2 < name.size() ? at + length + 2 : 0;
}

}  // namespace

std::string WithoutFileMarks(const std::string& mangled) {
  std::string out;
  std::size_t at = BehindStaticPrefix(mangled);
  while (at < mangled.size()) {
    std::size_t digits = at;
    const std::size_t length = Number(mangled, digits);
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
