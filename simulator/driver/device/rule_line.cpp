#include "simulator/driver/device/rule_line.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace spillway::simulator {
namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

RuleTermRef Of(RuleTerm term) { return std::make_shared<const RuleTerm>(std::move(term)); }

RuleTermRef Of(RuleTerm::Kind kind, RuleTermRef left, RuleTermRef right) {
  return Of({.kind = kind, .left = std::move(left), .right = std::move(right)});
}

RuleTermRef NumberTerm(std::uint64_t value) { return Of({.value = value}); }

}  // namespace

void RuleLine::Fail(std::string what) {
  if (status_.ok()) status_ = base::Error{std::move(what)};
  at_ = text_.size();
}

void RuleLine::SkipSpace() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

bool RuleLine::AtEnd() {
  SkipSpace();
  return at_ == text_.size() || text_[at_] == '#';
}

bool RuleLine::Take(char wanted) {
  SkipSpace();
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

// The whole word, so that `sum` is not found in `summary`.
bool RuleLine::TakeWord(std::string_view wanted) {
  SkipSpace();
  const std::size_t end = at_ + wanted.size();
  if (text_.compare(at_, wanted.size(), wanted) != 0) return false;
  if (end < text_.size() && IsLetter(text_[end])) return false;
  at_ = end;
  return true;
}

void RuleLine::Expect(char wanted) {
  if (!Take(wanted)) Fail(std::string("'") + wanted + "' is missing");
}

std::string RuleLine::Pattern() {
  const std::size_t start = at_;
  at_ = std::min(text_.find('"', at_), text_.size());
  std::string pattern = text_.substr(start, at_ - start);
  if (!Take('"')) Fail("the closing '\"' is missing");
  return pattern;
}

std::string RuleLine::Name() {
  SkipSpace();
  const std::size_t start = at_;
  while (at_ < text_.size() && !IsSpace(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::string RuleLine::Word() {
  SkipSpace();
  const std::size_t start = at_;
  while (at_ < text_.size() && IsLetter(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::uint64_t RuleLine::Number() {
  SkipSpace();
  const std::size_t start = at_;
  while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  if (at_ == start || at_ - start > 18) return Fail("a number is missing"), 0;
  return std::strtoull(text_.c_str() + start, nullptr, 10);
}

std::uint32_t RuleLine::ParameterNumber() {
  Expect('p');
  return static_cast<std::uint32_t>(Number());
}

std::uint32_t RuleLine::WidthBytes() {
  if (!Take(':')) return 4;
  const std::uint64_t bits = Number();
  if (bits == 8 || bits == 16 || bits == 32 || bits == 64)
    return static_cast<std::uint32_t>(bits / 8);
  return Fail("words have 8, 16, 32 or 64 bits"), 4;
}

RuleTermRef RuleLine::PlaceInParameter() {
  const std::uint32_t width_bytes = WidthBytes();
  if (!Take('[')) return nullptr;
  RuleTermRef place = Of(RuleTerm::kMultiply, Sum(), NumberTerm(width_bytes));
  Expect(']');
  return place;
}

RuleTermRef RuleLine::BytesBefore() { return Take('-') ? Product() : nullptr; }

RuleTermRef RuleLine::Bytes() { return TakeWord("all") ? nullptr : Sum(); }

RuleTermRef RuleLine::Sum() {
  RuleTermRef sum = Product();
  while (true) {
    if (Take('+'))
      sum = Of(RuleTerm::kAdd, sum, Product());
    else if (Take('-'))
      sum = Of(RuleTerm::kSubtract, sum, Product());
    else
      return sum;
  }
}

RuleTermRef RuleLine::Product() {
  RuleTermRef product = Factor();
  while (true) {
    if (Take('*'))
      product = Of(RuleTerm::kMultiply, product, Factor());
    else if (Take('/'))
      product = Of(RuleTerm::kDivide, product, Factor());
    else
      return product;
  }
}

RuleTermRef RuleLine::Factor() {
  if (Take('(')) {
    RuleTermRef inner = Sum();
    Expect(')');
    return inner;
  }
  if (TakeWord("sizeof")) return TypeBytes();
  if (TakeWord("sum")) return Repeated();
  if (TakeWord("bytes")) return ParameterBytes();
  if (TakeWord("min")) return Smaller();
  if (TakeWord("any")) return Any();
  if (RuleTermRef shape = Shape(); shape != nullptr) return shape;
  if (TakeWord("i")) return Of({.kind = RuleTerm::kEach});
  if (TakeWord("j")) return Of({.kind = RuleTerm::kTurn});
  return Take('p') ? Parameter() : NumberTerm(Number());
}

RuleTermRef RuleLine::Shape() {
  if (TakeWord("g")) return Of({.kind = RuleTerm::kBlocks});
  for (const char* const along : {"gx", "gy", "gz"}) {
    if (TakeWord(along))
      return Of(
          {.kind = RuleTerm::kBlocksAlong, .value = static_cast<std::uint64_t>(along[1] - 'x')});
  }
  return nullptr;
}

RuleTermRef RuleLine::Parameter() {
  const std::uint64_t number = Number();
  const std::uint32_t width_bytes = WidthBytes();
  if (!Take('[')) return Of({.kind = RuleTerm::kParameter, .value = number});
  RuleTermRef word =
      Of({.kind = RuleTerm::kWord, .value = number, .width_bytes = width_bytes, .left = Sum()});
  Expect(']');
  return word;
}

RuleTermRef RuleLine::Repeated() {
  Expect('(');
  RuleTermRef turns = Sum();
  Expect(',');
  RuleTermRef each = Sum();
  Expect(')');
  return Of(RuleTerm::kSum, std::move(turns), std::move(each));
}

RuleTermRef RuleLine::Smaller() {
  Expect('(');
  RuleTermRef one = Sum();
  Expect(',');
  RuleTermRef other = Sum();
  Expect(')');
  return Of(RuleTerm::kSmaller, std::move(one), std::move(other));
}

RuleTermRef RuleLine::Any() {
  Expect('(');
  RuleTermRef number = Sum();
  Expect(')');
  return Of(RuleTerm::kAny, std::move(number), nullptr);
}

RuleTermRef RuleLine::TypeBytes() {
  Expect('(');
  RuleTermRef type = Of({.kind = RuleTerm::kTypeBytes, .name = types_.emplace_back(Word())});
  Expect(')');
  return type;
}

RuleTermRef RuleLine::ParameterBytes() {
  Expect('(');
  RuleTermRef bytes = Of({.kind = RuleTerm::kBytes, .value = ParameterNumber()});
  Expect(')');
  return bytes;
}

}  // namespace spillway::simulator
