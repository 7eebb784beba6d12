#include "deploy/kubernetes/quantity.h"

#include <charconv>
#include <limits>
#include <optional>

namespace spillway::kubernetes {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kMostDigits = 18, kMostExponent = 18;

struct Suffix {
  std::string_view name;
  uint64_t factor;
  int tenths;  // further powers of ten, perhaps negative
};
constexpr uint64_t kKibi = 1024;
constexpr Suffix kSuffixes[] = {
    {"", 1, 0},
    {"n", 1, -9},
    {"u", 1, -6},
    {"m", 1, -3},
    {"k", 1, 3},
    {"M", 1, 6},
    {"G", 1, 9},
    {"T", 1, 12},
    {"P", 1, 15},
    {"E", 1, 18},
    {"Ki", kKibi, 0},
    {"Mi", kKibi* kKibi, 0},
    {"Gi", kKibi* kKibi* kKibi, 0},
    {"Ti", kKibi* kKibi* kKibi* kKibi, 0},
    {"Pi", kKibi* kKibi* kKibi* kKibi* kKibi, 0},
    {"Ei", kKibi* kKibi* kKibi* kKibi* kKibi* kKibi, 0},
};

struct Mantissa {
  uint64_t digits = 0;
  int tenths = 0;
};

std::optional<Mantissa> TakeMantissa(std::string_view& text) {
  Mantissa number;
  int digits = 0;
  bool is_fraction = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !is_fraction) {
      is_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    number.digits = number.digits * 10 + static_cast<uint64_t>(c - '0');
    if (number.digits > 0 && ++digits > kMostDigits) return std::nullopt;
    if (is_fraction && --number.tenths < -kMostDigits) return std::nullopt;
  }
  return number;
}

// The exponent of "e9" or "E-3".
std::optional<int> ExponentIn(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (exponent > kMostExponent || exponent < -kMostExponent) return std::nullopt;
  return exponent;
}

std::optional<Suffix> SuffixIn(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.name == text) return suffix;
  }
  if (const std::optional<int> exponent = ExponentIn(text)) return Suffix{"", 1, *exponent};
  return std::nullopt;
}

std::optional<int64_t> BytesOf(const Mantissa& number, const Suffix& suffix) {
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  Wide value = Wide{number.digits} * suffix.factor;
  int tenths = number.tenths + suffix.tenths;
  for (; tenths > 0; --tenths) {
    if (value > kMost) return std::nullopt;
    value *= 10;
  }
  bool is_cut = false;
  for (; tenths < 0; ++tenths) {
    is_cut = is_cut || value % 10 != 0;
    value /= 10;
  }
  value += is_cut ? 1 : 0;
  if (value > kMost) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace

base::Result<int64_t> ParseQuantity(std::string_view text) {
  const base::Error wrong{"'" + std::string(text) + "' is no quantity of memory", "",
                          "write it as \"8Gi\" or \"512Mi\""};
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  const size_t before = rest.size();
  const std::optional<Mantissa> number = TakeMantissa(rest);
  if (!number || rest.size() == before || (before - rest.size() == 1 && text.front() == '.'))
    return wrong;
  const std::optional<Suffix> suffix = SuffixIn(rest);
  if (!suffix) return wrong;
  const std::optional<int64_t> bytes = BytesOf(*number, *suffix);
  if (!bytes) return base::Error{"'" + std::string(text) + "' is more than 2^63 bytes"};
  return *bytes;
}

std::string FormatQuantity(int64_t bytes) {
  constexpr const char* kNames[] = {"Ei", "Pi", "Ti", "Gi", "Mi", "Ki"};
  int64_t factor = int64_t{1} << 60;
  for (const char* const name : kNames) {
    if (bytes > 0 && bytes % factor == 0) return std::to_string(bytes / factor) + name;
    factor >>= 10;
  }
  return std::to_string(bytes);
}

}  // namespace spillway::kubernetes
