#include "base/options/option.h"

#include <algorithm>
#include <sstream>

namespace spillway::base {

std::vector<std::string> WordsOf(const Option& option) {
  const OptionValue& value = option.value;
  const std::string before = value.more_words == nullptr ? "" : value.more_words() + ' ';
  std::istringstream text(before + std::string(value.words));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

std::string DescriptionOf(const Option& option) {
  constexpr std::string_view kMark = "{values}";
  std::string description(option.description);
  const size_t at = description.find(kMark);
  if (at != std::string::npos) description.replace(at, kMark.size(), Joined(WordsOf(option), ", "));
  return description;
}

std::string FirstClauseOf(const Option& option) {
  const std::string description = DescriptionOf(option);
  size_t end = description.size();
  for (const char* detail : {" (", "; ", ": ", ". "}) end = std::min(end, description.find(detail));
  return description.substr(0, end);
}

std::string Joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

}  // namespace spillway::base
