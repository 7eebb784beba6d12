#include "simulator/driver/device/name_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace spillway::simulator {
namespace {

using Text = std::string_view;

struct NumberType {
  Text name;
  std::uint32_t size_bytes;
};

constexpr std::array kTypes = {
    NumberType{"float", 4},
    NumberType{"double", 8},
    NumberType{"bool", 1},
    NumberType{"char", 1},
    NumberType{"signed char", 1},
    NumberType{"unsigned char", 1},
    NumberType{"short", 2},
    NumberType{"unsigned short", 2},
    NumberType{"int", 4},
    NumberType{"unsigned int", 4},
    NumberType{"long", 8},
    NumberType{"unsigned long", 8},
    NumberType{"long long", 8},
    NumberType{"unsigned long long", 8},
    NumberType{"__half", 2},
    NumberType{"__nv_bfloat16", 2},
    NumberType{"c10::Half", 2},
    NumberType{"c10::BFloat16", 2},
    NumberType{"c10::Float8_e4m3fn", 1},
    NumberType{"c10::Float8_e4m3fnuz", 1},
    NumberType{"c10::Float8_e5m2", 1},
    NumberType{"c10::Float8_e5m2fnuz", 1},
    NumberType{"c10::Float8_e8m0fnu", 1},
    NumberType{"c10::complex<c10::Half>", 4},
    NumberType{"c10::complex<float>", 8},
    NumberType{"c10::complex<double>", 16},
    NumberType{"c10::qint8", 1},
    NumberType{"c10::quint8", 1},
    NumberType{"c10::qint32", 4},
    NumberType{"c10::bits8", 1},
    NumberType{"c10::bits16", 2},
    NumberType{"c10::Float4_e2m1fn_x2", 1},
    NumberType{"cutlass::half_t", 2},
    NumberType{"cutlass::bfloat16_t", 2},
    // PyTorch moves elements of one size with one kernel.
    NumberType{"at::native::OpaqueType<1>", 1},
    NumberType{"at::native::OpaqueType<2>", 2},
    NumberType{"at::native::OpaqueType<4>", 4},
    NumberType{"at::native::OpaqueType<8>", 8},
    NumberType{"at::native::OpaqueType<16>", 16},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<1>", 1},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<2>", 2},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<4>", 4},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<8>", 8},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<1u>", 1},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<2u>", 2},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<4u>", 4},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<8u>", 8},
    NumberType{"at::native::(anonymous namespace)::OpaqueType<16u>", 16},
    NumberType{"at::cuda::cub::detail::OpaqueType<1>", 1},
    NumberType{"at::cuda::cub::detail::OpaqueType<2>", 2},
    NumberType{"at::cuda::cub::detail::OpaqueType<4>", 4},
    NumberType{"at::cuda::cub::detail::OpaqueType<8>", 8},
};

struct Piece {
  enum Kind { kCharacter, kSet, kType, kChoice } kind;
  Text inner;
  std::size_t length;
};

bool IsWord(Text text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalpha(c) != 0; });
}

Piece FirstPiece(Text pattern) {
  const Piece character{Piece::kCharacter, pattern.substr(0, 1), 1};
  if (pattern.front() != '{' && pattern.front() != '[') return character;
  const bool is_set = pattern.front() == '[';
  const std::size_t end =
      is_set ? pattern.find(']', pattern.starts_with("[!") ? 3 : 2) : pattern.find('}');
  if (end == Text::npos) return character;
  const Text inner = pattern.substr(1, end - 1);
  if (is_set) return {Piece::kSet, inner, end + 1};
  if (IsWord(inner)) return {Piece::kType, inner, end + 1};
  if (inner.find('|') != Text::npos) return {Piece::kChoice, inner, end + 1};
  return character;
}

bool IsInSet(Text set, char c) {
  const bool is_negated = set.starts_with('!');
  if (is_negated) set.remove_prefix(1);
  bool is_listed = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    is_listed = is_listed || (is_range ? set[i] <= c && c <= set[i + 2] : set[i] == c);
    if (is_range) i += 2;
  }
  return is_listed != is_negated;
}

class Matcher {
 public:
  Matcher(std::size_t pattern_bytes, std::size_t name_bytes)
      : name_bytes_(name_bytes), failed_((pattern_bytes + 1) * (name_bytes + 1)) {}

  bool Match(Text pattern, Text name) {
    while (!pattern.empty()) {
      if (pattern.front() == '*') return MatchAnyText(pattern.substr(1), name);
      const Piece piece = FirstPiece(pattern);
      pattern.remove_prefix(piece.length);
      if (piece.kind == Piece::kType) return MatchType(piece.inner, pattern, name);
      if (piece.kind == Piece::kChoice) return MatchChoice(piece.inner, pattern, name);
      if (name.empty() || !MatchOne(piece, name.front())) return false;
      name.remove_prefix(1);
    }
    return name.empty();
  }
  TypeSizes sizes() const {
    TypeSizes sizes;
    for (const auto& [word, type] : types_) sizes.emplace(word, type.size_bytes);
    return sizes;
  }

 private:
  static bool MatchOne(const Piece& piece, char c) {
    if (piece.kind == Piece::kSet) return IsInSet(piece.inner, c);
    return piece.inner == "?" || piece.inner.front() == c;
  }

  // Without captures so far, a rest that did not match once never will. This keeps patterns of many
  // stars fast.
  bool MatchAnyText(Text rest, Text name) {
    if (rest.empty()) return true;
    for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
      const Text from = name.substr(skipped);
      const std::size_t place = rest.size() * (name_bytes_ + 1) + from.size();
      if (types_.empty() && failed_[place]) continue;
      if (Match(rest, from)) return true;
      if (types_.empty()) failed_[place] = true;
    }
    return false;
  }

  bool MatchChoice(Text choices, Text rest, Text name) {
    while (true) {
      const std::size_t bar = std::min(choices.find('|'), choices.size());
      const Text choice = choices.substr(0, bar);
      if (name.starts_with(choice) && Match(rest, name.substr(choice.size()))) return true;
      if (bar == choices.size()) return false;
      choices.remove_prefix(bar + 1);
    }
  }

  bool MatchType(Text word, Text rest, Text name) {
    const auto known = std::find_if(types_.begin(), types_.end(),
                                    [&](const auto& entry) { return entry.first == word; });
    if (known != types_.end())
      return name.starts_with(known->second.name) &&
             Match(rest, name.substr(known->second.name.size()));
    for (const NumberType& type : kTypes) {
      if (!name.starts_with(type.name)) continue;
      types_.emplace_back(word, type);
      if (Match(rest, name.substr(type.name.size()))) return true;
      types_.pop_back();
    }
    return false;
  }

  const std::size_t name_bytes_;
  std::vector<bool> failed_;  // by the lengths of what remains of pattern and name
  std::vector<std::pair<Text, NumberType>> types_;
};

}  // namespace

std::optional<TypeSizes> NamePattern::Match(Text name) const {
  Matcher matcher(text_.size(), name.size());
  if (!matcher.Match(text_, name)) return std::nullopt;
  return matcher.sizes();
}

bool NamePattern::Captures(Text type) const {
  return text_.find("{" + std::string(type) + "}") != std::string::npos;
}

}  // namespace spillway::simulator
