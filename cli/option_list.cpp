#include "cli/option_list.h"

#include "cli/failure.h"

namespace spillway::cli {
namespace {

Failure BadOption(const std::string& subcommand, const std::string& what, const std::string& why) {
  return {kExitUsage, what, why, "see: spillway help " + subcommand};
}

}  // namespace

std::vector<std::string> ForEachOption(
    const std::vector<std::string>& arguments, const std::string& subcommand, const char* letters,
    const option* options, const std::function<void(int letter, const std::string& value)>& take) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& copy : copies) argv.push_back(copy.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(arguments.size());
  // '+': stop at the first operand, as the rest belongs to the command. ':': no messages from
  // getopt.
  const std::string short_options = std::string("+:") + letters;
  optind = 0;
  for (;;) {
    const int index = optind == 0 ? 1 : optind;
    const int letter = getopt_long(argc, argv.data(), short_options.c_str(), options, nullptr);
    if (letter == -1) break;
    const std::string written = index < argc ? arguments[index] : "";
    if (letter == ':')
      throw BadOption(subcommand, written + " needs a value", "nothing follows it");
    if (letter == '?')
      throw BadOption(subcommand, "cannot use " + written, "it is no option, or used wrongly");
    take(letter, optarg == nullptr ? "" : optarg);
  }
  return {arguments.begin() + optind, arguments.end()};
}

}  // namespace spillway::cli
