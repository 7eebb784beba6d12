#include "cli/script_file.h"

namespace spillway::cli {

std::optional<std::string> ScriptInterpreter(std::string_view contents) {
  if (contents.compare(0, 2, "#!") != 0) return std::nullopt;
  const std::string_view line = contents.substr(2, contents.find('\n') - 2);
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t end = line.find_first_of(" \t\r", begin);
  return std::string(line.substr(begin, end == std::string::npos ? end : end - begin));
}

}  // namespace spillway::cli
