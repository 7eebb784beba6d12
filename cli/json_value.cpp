#include "cli/json_value.h"

#include <cstdlib>

namespace spillway::cli {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  std::optional<JsonValue> ReadAll() {
    JsonValue value;
    const bool is_whole = Read(value, JsonValue::kMostDepth) && (SkipBlanks(), rest_.empty());
    return is_whole ? std::optional(std::move(value)) : std::nullopt;
  }

 private:
  void SkipBlanks() {
    const size_t begin = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(begin == rest_.npos ? rest_.size() : begin);
  }
  bool Take(std::string_view word) {
    SkipBlanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool Read(JsonValue& value, int depth) {
    if (depth == 0) return false;
    if (Take("{")) return ReadMembers(value, depth);
    if (Take("[")) return ReadEntries(value, depth);
    if (Take("\"")) return ReadText(value.text_);
    if (Take("true")) return value.flag_ = true;
    if (Take("false") || Take("null")) return true;
    return ReadNumber(value);
  }

  bool ReadMembers(JsonValue& value, int depth) {
    if (Take("}")) return true;
    do {
      value.names_.emplace_back();
      value.entries_.emplace_back();
      if (!Take("\"") || !ReadText(value.names_.back()) || !Take(":")) return false;
      if (!Read(value.entries_.back(), depth - 1)) return false;
    } while (Take(","));
    return Take("}");
  }

  bool ReadEntries(JsonValue& value, int depth) {
    if (Take("]")) return true;
    do {
      value.entries_.emplace_back();
      if (!Read(value.entries_.back(), depth - 1)) return false;
    } while (Take(","));
    return Take("]");
  }

  // Starts after the opening quote. Escapes, unsafe on a terminal, become '?'.
  bool ReadText(std::string& text) {
    for (; !rest_.empty() && rest_.front() != '"'; rest_.remove_prefix(1)) {
      if (rest_.front() != '\\') {
        text += rest_.front();
        continue;
      }
      if (rest_.size() < 2) return false;
      const char escaped = rest_[1];
      text += escaped == '"' || escaped == '\\' || escaped == '/' ? escaped : '?';
      const size_t more = escaped == 'u' ? 5 : 1;
      if (rest_.size() <= more) return false;
      rest_.remove_prefix(more);
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool ReadNumber(JsonValue& value) {
    SkipBlanks();
    const size_t end = rest_.find_first_not_of("+-.0123456789eE");
    const std::string word(rest_.substr(0, end));
    if (word.empty()) return false;
    value.number_ = std::strtoll(word.c_str(), nullptr, 10);
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string_view rest_;
};

std::optional<JsonValue> JsonValue::Parse(std::string_view text) {
  return JsonReader(text).ReadAll();
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
  static const JsonValue none;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return entries_[i];
  }
  return none;
}

}  // namespace spillway::cli
