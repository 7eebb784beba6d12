#include "base/options/option_parser.h"

#include <getopt.h>

#include <algorithm>

namespace spillway::base {
namespace {

constexpr int kFirstLongOption = 256;

int GetoptArgument(Need need) {
  return need == Need::kNever    ? no_argument
         : need == Need::kAlways ? required_argument
                                 : optional_argument;
}

// The names point into the options' constants, which end with zero.
std::vector<option> LongOptions(const std::vector<Option>& options) {
  std::vector<option> long_options;
  long_options.reserve(options.size() + 1);
  for (const Option& one : options) {
    const int index = static_cast<int>(long_options.size());
    long_options.push_back(
        {one.name.data(), GetoptArgument(one.value.need), nullptr, kFirstLongOption + index});
  }
  long_options.push_back({});
  return long_options;
}

// '+': stop at the first operand, as the rest belongs to the command. ':': no messages from getopt.
std::string ShortOptions(const std::vector<Option>& options) {
  std::string letters = "+:";
  for (const Option& one : options) {
    if (one.letter == 0) continue;
    letters += one.letter;
    if (one.value.need == Need::kAlways) letters += ':';
  }
  return letters;
}

size_t IndexOf(int found, const std::vector<Option>& options) {
  if (found >= kFirstLongOption) return static_cast<size_t>(found - kFirstLongOption);
  const auto is_found = [&](const Option& one) { return one.letter == found; };
  const auto place = std::find_if(options.begin(), options.end(), is_found);
  return static_cast<size_t>(place - options.begin());
}

}  // namespace

Result<std::vector<std::string>> TakeEachOption(
    const std::vector<std::string>& arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(arguments.size());
  const std::string short_options = ShortOptions(options);
  const std::vector<option> long_options = LongOptions(options);
  optind = 0;
  for (;;) {
    const int index = optind == 0 ? 1 : optind;
    const int found =
        getopt_long(argc, argv.data(), short_options.c_str(), long_options.data(), nullptr);
    if (found == -1) break;
    const std::string written = index < argc ? arguments[index] : "";
    if (found == ':') return Error{written + " needs a value", "nothing follows it"};
    if (found == '?') return Error{"cannot use " + written, "it is no option, or used wrongly"};
    take(IndexOf(found, options), optarg == nullptr ? "" : optarg);
  }
  return std::vector<std::string>(arguments.begin() + optind, arguments.end());
}

}  // namespace spillway::base
