#include "cli/options/option.h"

#include <algorithm>
#include <sstream>

#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {

std::vector<std::string> WordsOf(const Option& option) {
  std::vector<std::string> words;
  if (option.value.kind == Kind::kStrategy) {
    for (const scheduler::Strategy* strategy : scheduler::AllStrategies())
      words.emplace_back(strategy->name());
  }
  std::istringstream text{std::string(option.value.words)};
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

}  // namespace spillway::cli
