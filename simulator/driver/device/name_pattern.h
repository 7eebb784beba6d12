// A pattern over kernels' demangled names, as rules write it (declared_uses.h).
//
//     *      any text          [ab]  one of these characters, [a-z] a range, [!a] any other
//     ?      any character     {T}   a number type of C++, CUDA or PyTorch; its size is captured
//     {a|b}  one of these texts
// T is any word of letters; where it comes again, the same type must stand there. Everything else
// stands for itself, as the braces of `{lambda(float)#1}` do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::simulator {

using TypeSizes = std::map<std::string, std::uint32_t, std::less<>>;

class NamePattern {
 public:
  explicit NamePattern(std::string text) : text_(std::move(text)) {}

  std::optional<TypeSizes> Match(std::string_view name) const;
  bool Captures(std::string_view type) const;

 private:
  std::string text_;
};

}  // namespace spillway::simulator
