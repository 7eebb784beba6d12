// Parses and formats sizes: bytes, a share of the device, or a share of the job's peak.
//
// Invariants
//  1. Arithmetic is exact ("1.5GiB" is 1610612736); fractions of a byte are cut off.
//  2. KiB MiB GiB TiB and the bare letters K M G T are powers of 1024, as in coreutils and Slurm.
//     kB MB GB TB are powers of 1000. Case does not matter.
//  3. Nothing wraps silently: a number beyond 2^63 - 1 is not a size.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::base {

enum class SizeKind { kBytes, kShareOfDevice, kShareOfPeak };

struct Size {
  SizeKind kind;
  std::uint64_t bytes = 0;              // kBytes
  std::uint64_t share_per_billion = 0;  // 25 % is 250'000'000
  std::string written;                  // the user's text
};

namespace size_text {

__extension__ using UnsignedWide = unsigned __int128;

inline constexpr int kMaxFractionDigits = 9;
inline constexpr std::uint64_t kBillion = 1'000'000'000;
inline constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t billionths = 0;
};

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

inline constexpr std::uint64_t kKi = 1024;
inline constexpr Unit kUnits[] = {
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

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// False if there are no digits or too many.
inline bool TakeDigits(std::string_view& text, std::uint64_t& value, int& digits) {
  digits = 0;
  while (!text.empty() && IsDigit(text.front())) {
    if (value > kMaxBytes / 10 - 1) return false;
    value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
    ++digits;
  }
  return digits > 0;
}

inline std::optional<Decimal> TakeDecimal(std::string_view& text) {
  Decimal number;
  int digits = 0;
  if (!TakeDigits(text, number.whole, digits)) return std::nullopt;
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  if (!TakeDigits(text, number.billionths, digits) || digits > kMaxFractionDigits)
    return std::nullopt;
  for (; digits < kMaxFractionDigits; ++digits) number.billionths *= 10;
  return number;
}

inline std::string LowerCase(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

inline std::optional<std::uint64_t> ToBytes(const Decimal& number, const std::string& unit_name) {
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    const UnsignedWide bytes = UnsignedWide{number.whole} * unit.factor +
                               UnsignedWide{number.billionths} * unit.factor / kBillion;
    if (bytes > kMaxBytes) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

inline std::optional<Size> ToShare(const Decimal& number, SizeKind kind, std::string_view written) {
  constexpr std::uint64_t kMostPercent = 100'000;
  if (number.whole > kMostPercent) return std::nullopt;
  const std::uint64_t share = (number.whole * kBillion + number.billionths) / 100;
  return Size{.kind = kind, .share_per_billion = share, .written = std::string(written)};
}

}  // namespace size_text

inline std::optional<Size> ParseSize(std::string_view text) {
  using namespace size_text;
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

// `whole_bytes` is the device's memory or the job's peak, by `size.kind`; unused for kBytes.
inline std::uint64_t ResolveSize(const Size& size, std::uint64_t whole_bytes) {
  using namespace size_text;
  if (size.kind == SizeKind::kBytes) return size.bytes;
  const UnsignedWide bytes = UnsignedWide{whole_bytes} * size.share_per_billion / kBillion;
  return bytes > kMaxBytes ? kMaxBytes : static_cast<std::uint64_t>(bytes);
}

// "140.4 GiB", "512 bytes": binary units, one decimal, cut off.
inline std::string FormatBytes(std::uint64_t bytes) {
  using namespace size_text;
  static constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < kKi) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t factor = kKi;
  while (unit < 5 && bytes / factor >= kKi) {
    factor *= kKi;
    ++unit;
  }
  // 128 bits, because ten times 2^63 does not fit in 64.
  const auto tenths = static_cast<std::uint64_t>(UnsignedWide{bytes} * 10 / factor);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kNames[unit];
}

// "12GiB", "500MB", "4097": ParseSize reads it back exactly.
inline std::string FormatBytesExactly(std::uint64_t bytes) {
  using namespace size_text;
  constexpr const char* kBinary[] = {"TiB", "GiB", "MiB", "KiB"};
  constexpr const char* kDecimal[] = {"TB", "GB", "MB", "kB"};
  std::uint64_t factor = kKi * kKi * kKi * kKi;
  for (const char* const name : kBinary) {
    if (bytes > 0 && bytes % factor == 0) return std::to_string(bytes / factor) + name;
    factor /= kKi;
  }
  factor = 1000 * kBillion;
  for (const char* const name : kDecimal) {
    if (bytes > 0 && bytes % factor == 0) return std::to_string(bytes / factor) + name;
    factor /= 1000;
  }
  return std::to_string(bytes);
}

}  // namespace spillway::base
