// Runs a command and returns its output and exit status.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace spillway::test {

struct Finished {
  int exit_code;
  std::string output;  // standard output and error together
};

inline Finished RunProgram(const std::string& command) {
  Finished finished{-1, ""};
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return finished;
  std::array<char, 4096> chunk;
  while (const std::size_t count = fread(chunk.data(), 1, chunk.size(), pipe))
    finished.output.append(chunk.data(), count);
  const int status = pclose(pipe);
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

}  // namespace spillway::test
