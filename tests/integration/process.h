// Starts a program with a given environment and collects its output and exit code.
//
// For tests, on their single thread. The child gets exactly the passed variables, plus PATH.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace spillway::test {

using Environment = std::map<std::string, std::string>;

struct Ended {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string standard_output;
  std::string standard_error;

  bool operator==(const Ended&) const = default;
};

// Its first word is a path or is found in PATH.
Ended RunProgram(const std::vector<std::string>& command, const Environment& environment);

// An absent file counts as empty.
std::string FileText(const std::string& path);

}  // namespace spillway::test
