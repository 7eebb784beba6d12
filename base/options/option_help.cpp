#include "base/options/option_help.h"

#include <algorithm>
#include <sstream>

namespace spillway::base {
namespace {

constexpr size_t kLastColumn = 120;
constexpr size_t kWidestForm = 26;  // a wider one has its description on the next line
constexpr size_t kGap = 2;

// "--agent[=SOCKET]", "--budget SIZE" or "--off".
std::string LongForm(const Option& option) {
  const std::string form = "--" + std::string(option.name);
  const std::string value(option.value.name);
  if (option.value.need == Need::kAlways) return form + ' ' + value;
  return option.value.need == Need::kMaybe ? form + "[=" + value + ']' : form;
}

std::string IndentedForm(const Option& option) {
  const std::string letter =
      option.letter == 0 ? "      " : std::string("  -") + option.letter + ", ";
  return letter + LongForm(option);
}

size_t DescriptionColumn(const std::vector<Option>& options) {
  size_t widest = 0;
  for (const Option& option : options) {
    const size_t width = IndentedForm(option).size();
    if (width <= kWidestForm) widest = std::max(widest, width);
  }
  return widest + kGap;
}

std::string Wrapped(const std::string& text, size_t column) {
  std::string wrapped;
  size_t at = column;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool is_first = wrapped.empty();
    const bool fits = at + 1 + word.size() <= kLastColumn;
    if (!is_first) wrapped += fits ? " " : "\n" + std::string(column, ' ');
    at = is_first || !fits ? column + word.size() : at + 1 + word.size();
    wrapped += word;
  }
  return wrapped;
}

}  // namespace

std::string OptionsHelp(const std::vector<Option>& options) {
  const size_t column = DescriptionColumn(options);
  std::string help;
  for (const Option& option : options) {
    std::string form = IndentedForm(option);
    if (form.size() > kWidestForm) form += '\n' + std::string(column, ' ');
    if (form.size() < column) form.resize(column, ' ');
    help += form + Wrapped(DescriptionOf(option), column) + '\n';
  }
  return help;
}

std::string OptionsUsage(const std::vector<Option>& options) {
  std::vector<std::string> forms;
  for (const Option& option : options) {
    if (option.name != kHelpOption.name) forms.push_back('[' + LongForm(option) + ']');
  }
  return Joined(forms);
}

}  // namespace spillway::base
