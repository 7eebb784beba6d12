// A JSON document as values, for what the agent sends: just enough to read it without a library
// that a GPU node may lack.
//
// Pure; values in, values out.
//
// Invariants
//  1. What is no JSON, or nests deeper than kMostDepth, is no document.
//  2. A member that is missing, or of another kind, reads as empty or zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cli {

class JsonValue {
 public:
  static constexpr int kMostDepth = 32;

  static std::optional<JsonValue> Parse(std::string_view text);

  // Of an object.
  const JsonValue& operator[](std::string_view name) const;
  // Of an array.
  const std::vector<JsonValue>& entries() const { return entries_; }
  std::int64_t number() const { return number_; }  // whole; a fraction is cut off
  bool flag() const { return flag_; }
  const std::string& text() const { return text_; }

 private:
  friend class JsonReader;
  std::int64_t number_ = 0;
  bool flag_ = false;
  std::string text_;
  std::vector<JsonValue> entries_;  // of an array, or of an object beside names_
  std::vector<std::string> names_;
};

}  // namespace spillway::cli
