#include "cli/size.h"

#include <cctype>
#include <limits>

namespace spillway::cli {
namespace {

constexpr int kMaxFractionDigits = 9;
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t billionths = 0;
};

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t factor;
};

constexpr std::uint64_t kKi = 1024;
constexpr Unit kUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", kKi},
    {"kib", kKi},
    {"kb", 1000},
    {"m", kKi* kKi},
    {"mib", kKi* kKi},
    {"mb", 1'000'000},
    {"g", kKi* kKi* kKi},
    {"gib", kKi* kKi* kKi},
    {"gb", kBillion},
    {"t", kKi* kKi* kKi* kKi},
    {"tib", kKi* kKi* kKi* kKi},
    {"tb", 1000 * kBillion},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes digits off the front of `text` into `value`; false when there are none or too many.
bool TakeDigits(std::string_view& text, std::uint64_t& value, int& digits) {
  digits = 0;
  while (!text.empty() && IsDigit(text.front())) {
    if (value > kMaxBytes / 10 - 1) return false;
    value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
    ++digits;
  }
  return digits > 0;
}

std::optional<Decimal> TakeDecimal(std::string_view& text) {
  Decimal number;
  int digits = 0;
  if (!TakeDigits(text, number.whole, digits)) return std::nullopt;
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  if (!TakeDigits(text, number.billionths, digits) || digits > kMaxFractionDigits) return std::nullopt;
  for (; digits < kMaxFractionDigits; ++digits) number.billionths *= 10;
  return number;
}

std::string LowerCase(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<std::uint64_t> ToBytes(const Decimal& number, const std::string& unit_name) {
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    using Wide = unsigned __int128;
    const Wide bytes = Wide{number.whole} * unit.factor + Wide{number.billionths} * unit.factor / kBillion;
    if (bytes > kMaxBytes) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

std::optional<Size> ToShare(const Decimal& number, SizeKind kind, std::string_view written) {
  constexpr std::uint64_t kMostPercent = 100'000;
  if (number.whole > kMostPercent) return std::nullopt;
  const std::uint64_t share = (number.whole * kBillion + number.billionths) / 100;
  return Size{.kind = kind, .share_per_billion = share, .written = std::string(written)};
}

}  // namespace

std::optional<Size> ParseSize(std::string_view text) {
  std::string_view rest = text;
  const std::optional<Decimal> number = TakeDecimal(rest);
  if (!number) return std::nullopt;
  if (rest == "%") return ToShare(*number, SizeKind::kShareOfDevice, text);
  if (rest == "%peak") return ToShare(*number, SizeKind::kShareOfPeak, text);
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::optional<std::uint64_t> bytes = ToBytes(*number, LowerCase(rest));
  if (!bytes) return std::nullopt;
  return Size{.kind = SizeKind::kBytes, .bytes = *bytes, .written = std::string(text)};
}

std::uint64_t ResolveSize(const Size& size, std::uint64_t whole_bytes) {
  if (size.kind == SizeKind::kBytes) return size.bytes;
  using Wide = unsigned __int128;
  const Wide bytes = Wide{whole_bytes} * size.share_per_billion / kBillion;
  return bytes > kMaxBytes ? kMaxBytes : static_cast<std::uint64_t>(bytes);
}

std::string FormatBytes(std::uint64_t bytes) {
  static constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < kKi) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t factor = kKi;
  while (unit < 5 && bytes / factor >= kKi) {
    factor *= kKi;
    ++unit;
  }
  // In 128 bits, as ten times 2^63 does not fit in 64.
  const auto tenths = static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * 10 / factor);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kNames[unit];
}

}  // namespace spillway::cli
