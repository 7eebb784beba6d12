#include "cli/options/option_parser.h"

#include <utility>

#include "cli/failure.h"

namespace spillway::cli {

std::vector<std::string> ForEachOption(
    const std::vector<std::string>& arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take) {
  auto operands = base::TakeEachOption(arguments, options, take);
  if (operands.ok()) return *std::move(operands);
  base::Error error = operands.error();
  error.remedy = "see: spillway help " + arguments.front();
  throw Failure(kExitUsage, std::move(error));
}

std::vector<std::string> ForEachOptionAnywhere(
    std::vector<std::string> arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take) {
  const std::string command = arguments.front();
  std::vector<std::string> operands;
  for (;;) {
    std::vector<std::string> rest = ForEachOption(arguments, options, take);
    if (rest.empty()) return operands;
    operands.push_back(rest.front());
    rest.front() = command;
    arguments = std::move(rest);
  }
}

}  // namespace spillway::cli
