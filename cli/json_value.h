// A small JSON reader for the agent's documents, without a library that a GPU node may lack.
//
// Invariants
//  1. Invalid JSON, or JSON deeper than kMostDepth, gives no document.
//  2. A missing member, or one of another type, reads as empty or zero.
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

  const JsonValue& operator[](std::string_view name) const;
  const std::vector<JsonValue>& entries() const { return entries_; }
  std::int64_t number() const { return number_; }  // fractions are truncated
  bool flag() const { return flag_; }
  const std::string& text() const { return text_; }

 private:
  friend class JsonReader;
  std::int64_t number_ = 0;
  bool flag_ = false;
  std::string text_;
  std::vector<JsonValue> entries_;
  std::vector<std::string> names_;
};

}  // namespace spillway::cli
